// Heads turned off, and what the model answers then: numbers that the model gave when the page was made.

import { chooser, element } from "../../../renderers/page/dom.js";
import { unpack } from "./arithmetic.js";
import { change, choice, onChange } from "./choice.js";
import { button, decimal, signed, switchHeads, table } from "./parts.js";
import { lesson, paragraph, say, write } from "./phrases.js";

export const DIGITS = 4;

// [choice][label] of a layer, by which heads are off.
export function answersOf(model, layer) {
  const { answers } = lesson.models[model];
  const numbers = unpack(answers.layers[layer]);
  const n = answers.labels.length;
  return new Map(answers.choices.map((off, at) => [off, Array.from(numbers.subarray(at * n, (at + 1) * n))]));
}

export function offSection(place) {
  const model = lesson.models[0];
  if (!model.answers) {
    place.append(paragraph("off.nothing", { model: model.name }));
    return;
  }
  const { labels, nLabels } = model.answers;
  const layers = element("div", { class: "choosers" });
  const switches = element("div", { class: "switches", role: "group" });
  const moves = element("div", { class: "switches" });
  moves.append(
    button(write("off.allon"), () => change({ off: 0 })),
    button(write("off.alloff"), () => change({ off: 2 ** model.nHeads - 1 })),
  );
  const said = element("div", { "aria-live": "polite" });
  const each = element("details", {});
  place.append(paragraph("off.lead"), layers, switches, moves, said, each, paragraph("off.caveat"));
  if (nLabels > labels.length) place.append(paragraph("off.shown", { shown: labels.length, all: nLabels }));
  if (model.layers.length > 1) {
    const options = model.layers.map((layer, at) => [at, String(layer.number)]);
    layers.append(chooser(write("choose.layer"), options, choice.offLayer, (offLayer) => change({ offLayer, off: 0 })));
  }
  onChange(["off", "offLayer"], () => {
    const answers = answersOf(0, choice.offLayer);
    const isOpen = each.open;
    switches.setAttribute("aria-label", write("off.heads", { layer: model.layers[choice.offLayer].number }));
    switchHeads(
      switches,
      model.nHeads,
      choice.off,
      (off) => change({ off }),
      (off) => answers.has(off),
    );
    said.replaceChildren(element("p", { class: "now" }, ...describeNow(labels[0], answers)), ...describeRest(answers));
    each.replaceChildren(element("summary", {}, write("off.each")), tableOfEach(labels[0], answers));
    each.open = isOpen;
  });
}

const changeOf = (answers, off) => answers.get(off)[0] - answers.get(0)[0];

const headsOff = () => [...Array(lesson.models[0].nHeads).keys()].filter((head) => (choice.off >> head) & 1);

// Whether heads that are off together change the answer by what each does by itself.
function describeNow(label, answers) {
  const off = headsOff();
  const sum = off.reduce((total, head) => total + changeOf(answers, 1 << head), 0);
  const values = {
    label: element("b", {}, label),
    now: decimal(answers.get(choice.off)[0], DIGITS),
    change: signed(changeOf(answers, choice.off), DIGITS),
    n: off.length,
    sum: signed(sum, DIGITS),
  };
  if (!off.length) return say("off.whole", values);
  return [...say("off.now", values), ...(off.length > 1 ? [" ", ...say("off.together", values)] : [])];
}

function describeRest(answers) {
  const { nHeads, answers: of, nLayers } = lesson.models[0];
  const changes = [...Array(nHeads).keys()].map((head) => Math.abs(changeOf(answers, 1 << head)));
  const most = changes.indexOf(Math.max(...changes));
  const [label, share] = of.nothing[choice.offLayer];
  const found = [];
  if (nHeads > 1)
    found.push(paragraph("off.most", { head: most, without: decimal(answers.get(1 << most)[0], DIGITS) }));
  found.push(paragraph("off.all", { label: element("b", {}, label), share: decimal(share, DIGITS) }));
  if (nLayers > 1) found.push(paragraph("off.rest", {}, { class: "hint" }));
  if (answers.size < 2 ** nHeads) found.push(paragraph("off.pairs", {}, { class: "hint" }));
  return found;
}

function tableOfEach(label, answers) {
  const rows = [...Array(lesson.models[0].nHeads).keys()].map((head) => [
    write("off.head", { head }),
    decimal(answers.get(1 << head)[0], DIGITS),
    signed(changeOf(answers, 1 << head), DIGITS),
  ]);
  const other = lesson.models[1];
  if (other?.answers && other.nHeads === 1) {
    const one = answersOf(1, Math.min(choice.offLayer, other.layers.length - 1));
    const name = write("heads.only", { model: other.name });
    rows.push([name, decimal(one.get(1)[0], DIGITS), signed(changeOf(one, 1), DIGITS)]);
  }
  return table(write("off.each"), [write("choose.head"), write("off.without", { label }), write("off.change")], rows);
}
