// Heads turned off, and what the model answers then: numbers that the model gave when the page was made.

import { chooser, element } from "../../../renderers/page/dom.js";
import { unpack } from "./arithmetic.js";
import { change, choice, onChange } from "./choice.js";
import { bar, button, decimal, redraw, row, signed, table } from "./parts.js";
import { lesson, paragraph, say, write } from "./phrases.js";

const DIGITS = 4;

// [choice][label] of a layer, by which heads are off.
function answersOf(model, layer) {
  const { answers } = lesson.models[model];
  const numbers = unpack(answers.layers[layer]);
  const n = answers.labels.length;
  return new Map(answers.choices.map((off, at) => [off, Array.from(numbers.subarray(at * n, (at + 1) * n))]));
}

export function absenceSection(place) {
  const model = lesson.models[0];
  if (!model.answers) {
    place.append(paragraph("off.nothing", { model: model.name }));
    return;
  }
  const { labels, whole, nLabels } = model.answers;
  const label = element("b", {}, labels[0]);
  const all = 2 ** model.nHeads - 1;
  const heads = [...Array(model.nHeads).keys()];
  const layers = element("div", { class: "choosers" });
  const switches = element("div", { class: "switches", role: "group" });
  const moves = element(
    "div",
    { class: "moves" },
    button(write("off.allon"), () => change({ off: 0 })),
    button(write("off.alloff"), () => change({ off: all })),
  );
  const now = element("div", { "aria-live": "polite" });
  const said = element("div", { "aria-live": "polite" });
  const each = element("div", {});
  place.append(paragraph("off.lead", { label, share: decimal(whole[0], DIGITS) }));
  if (nLabels > labels.length) place.append(paragraph("off.others", { all: nLabels, n: labels.length }));
  place.append(layers, switches, moves, now, said, each);
  if (model.layers.length > 1) {
    const options = model.layers.map((layer, at) => [at, String(layer.number)]);
    layers.append(chooser(write("choose.layer"), options, choice.offLayer, (offLayer) => change({ offLayer, off: 0 })));
  }
  onChange(["off", "offLayer"], () => {
    const answers = answersOf(0, choice.offLayer);
    const number = model.layers[choice.offLayer].number;
    switches.setAttribute("aria-label", write("off.heads", { layer: number }));
    redraw(switches, ...heads.map((head) => headSwitch(head, answers)));
    now.replaceChildren(answersTable(labels, answers));
    said.replaceChildren(...describe(label, answers, heads));
    const { sentences, rows } = describeEach(labels[0], answers, heads);
    const columns = [write("choose.head"), write("off.without", { label: labels[0] }), write("off.change")];
    each.replaceChildren(...sentences, table(write("off.each"), columns, rows), ...describeAll(), ...describeOther());
  });
}

function headSwitch(head, answers) {
  const isOff = Boolean((choice.off >> head) & 1);
  const next = choice.off ^ (1 << head);
  const label = [write("off.head", { head }), element("span", {}, write(isOff ? "off.off" : "off.on"))];
  const state = { class: "switch-head", "data-at": head, "aria-pressed": !isOff, disabled: !answers.has(next) };
  return button(label, () => change({ off: next }), state);
}

function answersTable(labels, answers) {
  const [whole, now] = [answers.get(0), answers.get(choice.off)];
  const rows = labels.map((label, at) =>
    row(
      label,
      decimal(whole[at], DIGITS),
      [decimal(now[at], DIGITS), bar(now[at])],
      signed(now[at] - whole[at], DIGITS),
    ),
  );
  const columns = [write("off.label"), write("off.whole"), write("off.now"), write("off.change")];
  return table(write("off.answers"), columns, rows, { class: "answers" });
}

const isOff = (head) => (choice.off >> head) & 1;

// Whether heads that are off together change the answer by what each does by itself.
function describe(label, answers, heads) {
  const off = heads.filter(isOff);
  const whole = answers.get(0)[0];
  const sum = off.reduce((total, head) => total + answers.get(1 << head)[0] - whole, 0);
  const values = {
    n: off.length,
    sum: signed(sum, DIGITS),
    both: signed(answers.get(choice.off)[0] - whole, DIGITS),
    label,
  };
  const found = off.length > 1 ? [element("p", {}, ...say("off.together", values), " ", ...say("off.backup"))] : [];
  if (lesson.models[0].layers.length > 1 || lesson.models[0].nLayers > 1)
    found.push(paragraph("off.rest", {}, { class: "hint" }));
  if (answers.size < 2 ** heads.length) found.push(paragraph("off.pairs", {}, { class: "hint" }));
  return found;
}

function describeEach(label, answers, heads) {
  const whole = answers.get(0)[0];
  const change = (head) => answers.get(1 << head)[0] - whole;
  const order = [...heads].sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));
  const rows = order.map((head) =>
    row(write("off.head", { head }), decimal(whole + change(head), DIGITS), signed(change(head), DIGITS)),
  );
  const values = { head: order[0], label: element("b", {}, label), whole: decimal(whole, DIGITS) };
  const without = decimal(whole + change(order[0]), DIGITS);
  return { rows, sentences: heads.length > 1 ? [paragraph("off.most", { ...values, without })] : [] };
}

function describeAll() {
  const { nHeads, answers } = lesson.models[0];
  const [label, share] = answers.nothing[choice.offLayer];
  const values = { n: nHeads, label: element("b", {}, label), share: decimal(share, DIGITS) };
  return [paragraph(nHeads > 1 ? "off.all" : "off.all_one", values), paragraph("off.caveat", {}, { class: "hint" })];
}

// The other model beside, where it has one head.
function describeOther() {
  const other = lesson.models[1];
  if (!other?.answers || other.nHeads !== 1) return [];
  const layer = Math.min(choice.offLayer, other.layers.length - 1);
  const answers = answersOf(1, layer);
  const values = {
    model: other.name,
    layer: other.layers[layer].number,
    label: element("b", {}, other.answers.labels[0]),
  };
  const [whole, without] = [answers.get(0)[0], answers.get(1)[0]].map((each) => decimal(each, DIGITS));
  return [paragraph("off.single", { ...values, whole, without })];
}
