// Every head of a layer, their mean, and the one head of another model, over the same sentence.

import { element } from "../../../renderers/page/dom.js";
import { attend, effectiveKeys, findLargest } from "./arithmetic.js";
import { change, choice, choosers, headsOf, maskNote, onChange, WHICH_ROW } from "./choice.js";
import { button, decimal } from "./parts.js";
import { lesson, paragraph, say, token, tokenText, write } from "./phrases.js";

const N_TOP = 3;
const all = [...lesson.tokens.keys()];
const MOST = Math.min(16, Math.max(2, all.length)); // equal shares, of the strongest shade: of few keys no more is to be had
const PATTERNS = {
  "previous token": "previous",
  "next token": "next",
  itself: "itself",
  "own bracket": "bracket",
  "same word": "same_word",
  punctuation: "punctuation",
  "sentence start": "sentence",
};

export function headsSection(place) {
  const grid = element("div", { class: "heads" });
  const lead = element("p", {});
  const found = element("p", { "aria-live": "polite" });
  place.append(describeSizes(), lead, choosers("layer", "query"), maskNote(), grid, found);
  onChange([...WHICH_ROW, "causal"], () => {
    const shown = lesson.models.flatMap((model, at) => panelsOf(model, at));
    lead.replaceChildren(...say("heads.lead", { query: token(choice.query), most: MOST }));
    const focused = [...grid.children].findIndex((each) => each.contains(document.activeElement));
    grid.replaceChildren(...shown.map((each) => each.panel));
    grid.children[focused]?.querySelector("button")?.focus();
    found.replaceChildren(...describeDifference(shown));
  });
}

function describeSizes() {
  const [model, other] = lesson.models;
  const values = { model: model.name, width: model.dModel, heads: model.nHeads, d: model.layers[0].dHead };
  if (!other) return paragraph(model.nHeads > 1 ? "heads.alone" : "heads.alone_one", values);
  const share = (100 * Math.abs(model.nParameters - other.nParameters)) / other.nParameters;
  const written = (many) => many.toLocaleString("en-US");
  return paragraph("heads.same", {
    ...values,
    other: other.name,
    n: written(model.nParameters),
    m: written(other.nParameters),
    share: decimal(share, 2),
  });
}

function panelsOf(model, at) {
  const layer = Math.min(choice.layer, model.layers.length - 1);
  const heads = headsOf(at, layer);
  const maps = heads.map((head) => all.map((query) => attend(head, query, { causal: choice.causal }).weights));
  const known = model.layers[layer].known;
  const panels = maps.map((map, head) => {
    const name = heads.length > 1 ? write("heads.head", { head }) : write("heads.only", { model: model.name });
    const isChosen = at === choice.model && layer === choice.layer && head === choice.head;
    const choose = button(name, () => change({ model: at, layer, head }), { "aria-pressed": isChosen });
    const pattern = known && describePattern(known[head]);
    return { kind: "head", model: at, map, panel: panelOf(map, name, element("h3", {}, choose), pattern) };
  });
  if (heads.length < 2) return panels;
  const mean = all.map((query) =>
    all.map((key) => maps.reduce((total, map) => total + map[query][key], 0) / maps.length),
  );
  const name = write("heads.mean", { heads: heads.length });
  return [...panels, { kind: "mean", model: at, map: mean, panel: panelOf(mean, name, element("h3", {}, name), null) }];
}

function panelOf(map, name, title, pattern) {
  const weights = map[choice.query];
  const order = all.filter((at) => weights[at] > 0).sort((a, b) => weights[b] - weights[a]);
  const top = order.slice(0, N_TOP);
  const label = write("heads.map", {
    name,
    query: tokenText(choice.query),
    top: tokenText(top[0]),
    share: decimal(weights[top[0]]),
  });
  const listed = top.map((at) => element("li", {}, token(at), element("span", {}, decimal(weights[at]))));
  return element(
    "article",
    { class: "head" },
    title,
    drawMap(map, label),
    element("p", { class: "effective" }, ...say("heads.effective", { n: decimal(effectiveKeys(weights), 2) })),
    element("ol", {}, ...listed),
    ...(pattern ? [element("p", { class: "hint" }, ...say("heads.known", { pattern }))] : []),
    ...(pattern === "" ? [element("p", { class: "hint" }, write("heads.no_pattern"))] : []),
  );
}

// Rows of shades: how many times an equal share, in doublings. A key that is masked has none.
function drawMap(map, label) {
  const made = element("div", { class: "map", role: "img", "aria-label": label });
  for (const [query, weights] of map.entries()) {
    const open = choice.causal ? query + 1 : weights.length;
    const step = 100 / weights.length;
    const stops = weights.map((weight, at) => {
      const shade = Math.min(1, Math.max(0, Math.log2(weight * open) / Math.log2(MOST)));
      const colour = `color-mix(in srgb, var(--heat) ${(100 * shade).toFixed(1)}%, var(--ground))`;
      return `${choice.causal && at > query ? "var(--forbidden)" : colour} ${at * step}% ${(at + 1) * step}%`;
    });
    const line = element("div", { class: query === choice.query ? "row chosen" : "row" });
    line.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
    made.append(line);
  }
  return made;
}

// What a head was found to look at, over many texts; "" where that was measured and is nothing in particular.
export function describePattern(found) {
  if (!found) return "";
  const [name, part] = found;
  const share = decimal(100 * part, 0);
  const place = /^(\d+) (before|after)$/.exec(name);
  if (place) return write(`heads.${place[2]}`, { n: place[1], share });
  if (name.startsWith("words for ")) return write("heads.words_for", { label: name.slice(10), share });
  return write(`heads.${PATTERNS[name]}`, { share });
}

function describeDifference(shown) {
  const heads = shown.filter((each) => each.kind === "head" && each.model === 0);
  const average = shown.find((each) => each.kind === "mean" && each.model === 0);
  const others = shown.filter((each) => each.kind === "head" && each.model === 1);
  const keys = (each) => effectiveKeys(each.map[choice.query]);
  const found = [];
  if (average) {
    const tops = new Set(heads.map((each) => findLargest(each.map[choice.query])));
    const each = heads.reduce((total, head) => total + keys(head), 0) / heads.length;
    const values = { query: token(choice.query), heads: heads.length, n: tops.size };
    found.push(...say("heads.different", { ...values, each: decimal(each, 2), mean: decimal(keys(average), 2) }));
  }
  if (others.length === 1)
    found.push(" ", ...say("heads.other", { other: lesson.models[1].name, n: decimal(keys(others[0]), 2) }));
  return found;
}
