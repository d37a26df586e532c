// Heads turned off, and what the model answers then: numbers that the model gave when the page was made.

import { chooser, element, say, write } from "../../../renderers/page/dom.js";
import { findLargest } from "./arithmetic.js";
import { change, choice, onChange } from "./choice.js";
import { decimal, signed, switchHeads } from "./parts.js";
import { lesson, paragraph } from "./phrases.js";

export const DIGITS = 4;

export function offSection(place) {
  const model = lesson.models[0];
  if (!model.answers) {
    place.append(paragraph(model.trained ? "off.many" : "off.nothing", { model: model.name }));
    return;
  }
  const { labels, nLabels } = model.answers;
  const layers = element("div", { class: "tools" });
  const switches = element("div", { class: "tools", role: "group" });
  const said = element("div", { "aria-live": "polite" });
  place.append(paragraph("off.lead"), layers, switches, said, paragraph("off.caveat"));
  if (nLabels > labels.length) place.append(paragraph("off.shown", { shown: labels.length, all: nLabels }));
  if (model.layers.length > 1) {
    const options = model.layers.map((layer, at) => [at, String(layer.number)]);
    layers.append(chooser(write("choose.layer"), options, choice.offLayer, (offLayer) => change({ offLayer, off: 0 })));
  }
  onChange(["off", "offLayer"], () => {
    switches.setAttribute("aria-label", write("off.heads", { layer: model.layers[choice.offLayer].number }));
    switchHeads(switches, model.nHeads, choice.off, (off) => change({ off }));
    said.replaceChildren(...describeAnswer(model));
  });
}

// What the model says now, whether heads that are off together change it by what each does by itself, and by how much
// the one that matters most does.
function describeAnswer({ nHeads, answers: { labels, layers, nothing } }) {
  const answers = layers[choice.offLayer]; // [choice][label], by which heads are off
  const changeOf = (off) => answers[off][0] - answers[0][0];
  const heads = [...Array(nHeads).keys()];
  const alone = heads.map((head) => changeOf(1 << head));
  const off = heads.filter((head) => (choice.off >> head) & 1);
  const most = findLargest(alone.map(Math.abs));
  const sum = off.reduce((total, head) => total + alone[head], 0);
  const [label, share] = nothing[choice.offLayer];
  const values = {
    label: element("b", {}, labels[0]),
    now: decimal(answers[choice.off][0], DIGITS),
    change: signed(changeOf(choice.off), DIGITS),
    n: off.length,
    sum: signed(sum, DIGITS),
  };
  const now = say(off.length ? "off.now" : "off.whole", values);
  if (off.length > 1) now.push(" ", ...say("off.together", values));
  const found = [element("p", { class: "now" }, ...now)];
  if (nHeads > 1) found.push(paragraph("off.most", { head: most, without: decimal(answers[1 << most][0], DIGITS) }));
  found.push(paragraph("off.all", { label: element("b", {}, label), share: decimal(share, DIGITS) }));
  return found;
}
