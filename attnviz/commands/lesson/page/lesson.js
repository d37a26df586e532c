// The page: its head, its sections in order, and what is true of all of them.

import { byId, element, loadFonts, say } from "../../../renderers/page/dom.js";
import { blurSection } from "./blur.js";
import { change, choice } from "./choice.js";
import { headsSection } from "./heads.js";
import { judgeSection } from "./judge.js";
import { offSection } from "./off.js";
import { lesson, paragraph } from "./phrases.js";
import { N_STEPS, pictureSection } from "./picture.js";
import { whenSection } from "./when.js";

const isExample = "decimals" in lesson;
function* warnings() {
  for (const model of lesson.models) if (!model.trained) yield ["page.untrained", { model: model.name }];
  if (lesson.nUnknown) yield ["page.unknown", { unknown: lesson.nUnknown, tokens: lesson.nTokens }];
  if (lesson.mostlyUnknown) yield ["page.mostly", {}];
  if (lesson.cut) yield ["page.cut", { cut: lesson.cut }];
}

function start() {
  const names = lesson.models.flatMap((model, at) => [...(at ? say("page.and") : []), element("b", {}, model.name)]);
  const enlarge = () => byId("larger").setAttribute("aria-pressed", document.body.classList.toggle("large"));
  byId("larger").addEventListener("click", enlarge);
  addEventListener("keydown", ({ key, ctrlKey, metaKey, target }) => {
    if (ctrlKey || metaKey || target.closest("select, input")) return;
    if (key.toLowerCase() === "l") enlarge();
    const way = target === document.body ? { ArrowLeft: -1, ArrowRight: 1 }[key] : 0;
    if (way) change({ step: Math.min(Math.max(0, choice.step + way), N_STEPS - 1) });
  });
  byId("header").append(
    paragraph(isExample ? "page.example" : "page.lead", { models: element("span", {}, ...names) }),
    ...[...warnings()].map(([name, values]) => paragraph(name, values, { class: "warning" })),
  );
  pictureSection();
  if (isExample) judgeSection(byId("judge"));
  else offSection(byId("off"));
  byId(isExample ? "off" : "judge").remove();
  blurSection();
  headsSection();
  whenSection();
  byId("about").append(paragraph("page.again"));
  byId("view").dataset.ready = "";
}

await loadFonts();
byId("lesson").hidden = false;
start();
