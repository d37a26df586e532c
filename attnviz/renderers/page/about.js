// How to read the page, how exact its numbers are, and where they come from: closed until asked for.
import { content } from "./content.js";
import { element, isolated } from "./dom.js";

export function about(place) {
  const section = (title, ...inner) => element("section", {}, element("h2", {}, title), ...inner);
  const said = (sentences) => sentences.map((sentence) => element("p", {}, sentence));
  const notes = content.notes.map((note) => element("li", { dir: "auto" }, note));
  const facts = content.facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, isolated(value))]);
  const whole = element("details", {}, element("summary", {}, "About"));
  if (content.reading.length) whole.append(section("How to read it", ...said(content.reading)));
  if (notes.length) whole.append(section("To be read with it", element("ul", {}, ...notes)));
  if (content.exactness.length) whole.append(section("How exact it is", ...said(content.exactness)));
  if (facts.length) whole.append(section("Where it comes from", element("dl", {}, ...facts)));
  matchMedia("print").addEventListener("change", ({ matches }) => whole.toggleAttribute("open", matches));
  place.append(whole);
}
