// How to read the page, how exact its numbers are, and where they come from: closed until asked for.
import { content, element, isolated, write } from "./dom.js";

export function about(place) {
  const section = (title, ...inner) => element("section", {}, element("h2", {}, title), ...inner);
  const said = (sentences) => sentences.map((sentence) => element("p", {}, sentence));
  const notes = content.notes.map((note) => element("li", { dir: "auto" }, note));
  const facts = content.facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, isolated(value))]);
  const whole = element("details", {}, element("summary", {}, write("ui.about")));
  if (content.reading.length) whole.append(section(write("ui.reading"), ...said(content.reading)));
  if (notes.length) whole.append(section(write("ui.notes"), element("ul", {}, ...notes)));
  if (content.exactness.length) whole.append(section(write("ui.exactness"), ...said(content.exactness)));
  if (facts.length) whole.append(section(write("ui.facts"), element("dl", {}, ...facts)));
  place.append(whole);
}
