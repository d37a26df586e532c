// The page: its head, its sections in order, and what is true of all of them.

import { byId, element, isolated } from "../../../renderers/page/dom.js";
import { absenceSection } from "./absence.js";
import { blurSection } from "./blur.js";
import { byHandSection } from "./by_hand.js";
import { whenSection } from "./evidence.js";
import { lesson, paragraph, say, write } from "./phrases.js";
import { headsSection } from "./side_by_side.js";
import { tokensSection } from "./tokens.js";

const SECTIONS = [
  ["tokens", tokensSection],
  ["hand", byHandSection],
  ["blur", blurSection],
  ["heads", headsSection],
  ["off", absenceSection],
  ["when", whenSection],
];

const titleOf = (name, at) => `${at + 1} ${write(`${name}.title`)}`;

function start() {
  const names = lesson.models.flatMap((model, at) => [...(at ? say("page.and") : []), element("b", {}, model.name)]);
  const links = SECTIONS.map(([name], at) => element("li", {}, element("a", { href: `#${name}` }, titleOf(name, at))));
  byId("header").append(
    element("h1", {}, write("page.title")),
    element("p", { class: "sentence" }, isolated(lesson.text)),
    paragraph("page.lead", { models: element("span", {}, ...names) }),
    ...lesson.models
      .filter((model) => !model.trained)
      .map((model) => paragraph("page.untrained", { model: model.name }, { class: "warning" })),
    element("nav", { "aria-label": write("page.contents") }, element("ol", {}, ...links)),
  );
  for (const [at, [name, fill]] of SECTIONS.entries()) {
    const section = element("section", { id: name, "aria-labelledby": `${name}-title` });
    section.append(element("h2", { id: `${name}-title` }, titleOf(name, at)));
    byId("view").append(section);
    fill(section);
  }
  byId("about").append(paragraph("page.caution"), paragraph("page.again"));
  byId("view").dataset.ready = "";
}

start();
