// The page: its head, its sections in order, and what is true of all of them.

import { button, byId, element, isolated, loadFonts, say, write } from "../../../renderers/page/dom.js";
import { blurSection } from "./blur.js";
import { change, choice } from "./choice.js";
import { headsSection } from "./heads.js";
import { judgeSection } from "./judge.js";
import { offSection } from "./off.js";
import { lesson, paragraph } from "./phrases.js";
import { N_STEPS, pictureSection } from "./picture.js";
import { whenSection } from "./when.js";

const isExample = "decimals" in lesson;
const SECTIONS = {
  see: pictureSection,
  ...(isExample ? { judge: judgeSection } : { off: offSection }),
  blur: blurSection,
  heads: headsSection,
  when: whenSection,
};

function* warnings() {
  for (const model of lesson.models) if (!model.trained) yield ["page.untrained", { model: model.name }];
  if (lesson.nUnknown) yield ["page.unknown", { unknown: lesson.nUnknown, tokens: lesson.nTokens }];
  if (lesson.mostlyUnknown) yield ["page.mostly", {}];
  if (lesson.cut) yield ["page.cut", { cut: lesson.cut }];
}

function start() {
  const names = lesson.models.flatMap((model, at) => [...(at ? say("page.and") : []), element("b", {}, model.name)]);
  const enlarge = () => larger.setAttribute("aria-pressed", document.body.classList.toggle("large"));
  const larger = button(write("page.larger"), enlarge, { id: "larger", "aria-pressed": false });
  addEventListener("keydown", ({ key, ctrlKey, metaKey, target }) => {
    if (ctrlKey || metaKey || target.closest("select, input")) return;
    if (key.toLowerCase() === "l") enlarge();
    const way = target === document.body ? { ArrowLeft: -1, ArrowRight: 1 }[key] : 0;
    if (way) change({ step: Math.min(Math.max(0, choice.step + way), N_STEPS - 1) });
  });
  byId("header").append(
    larger,
    element("h1", {}, write("page.title")),
    element("p", { class: "sentence" }, isolated(lesson.text)),
    paragraph(isExample ? "page.example" : "page.lead", { models: element("span", {}, ...names) }),
    ...[...warnings()].map(([name, values]) => paragraph(name, values, { class: "warning" })),
  );
  for (const [name, fill] of Object.entries(SECTIONS)) {
    const title = element("h2", { id: `${name}-title` }, write(`${name}.title`));
    const section = element("section", { id: name, "aria-labelledby": `${name}-title` }, title);
    byId("view").append(section);
    fill(section);
  }
  byId("about").append(paragraph("page.caution"), paragraph("page.again"));
  byId("view").dataset.ready = "";
}

await loadFonts();
start();
