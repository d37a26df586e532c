// Every head of a layer, their mean, and the one head of another model, over the same sentence.

import { button, element, say, write } from "../../../renderers/page/dom.js";
import { attend, effectiveKeys, findLargest } from "./arithmetic.js";
import { change, choice, headsOf, onChange, positions, queries, WHICH_ROW } from "./choice.js";
import { decimal } from "./parts.js";
import { lesson, paragraph, token, tokenText } from "./phrases.js";

const MOST = Math.min(16, Math.max(2, positions.length)); // equal shares, of the strongest shade: few keys give no more

export function headsSection(place) {
  const grid = element("div", { class: "heads" });
  const found = element("p", { "aria-live": "polite" });
  const [model, other] = lesson.models;
  const sizes = { model: model.name, width: model.dModel, heads: model.nHeads, d: model.layers[0].dHead };
  const apart = other?.nParameters && decimal(100 * Math.abs(model.nParameters / other?.nParameters - 1), 1);
  if (apart) place.append(paragraph("heads.same", { ...sizes, other: other.name, apart }));
  else if (!other) place.append(paragraph("heads.alone", sizes));
  place.append(paragraph("heads.lead", { most: MOST }), found, grid);
  onChange(WHICH_ROW, () => {
    const shown = lesson.models.flatMap(panelsOf);
    const focused = [...grid.children].findIndex((each) => each.contains(document.activeElement));
    grid.replaceChildren(...shown.map((each) => each.panel));
    grid.children[focused]?.querySelector("button")?.focus();
    found.replaceChildren(...describeDifference(shown));
  });
}

function panelsOf(model, at) {
  const layer = Math.min(choice.layer, model.layers.length - 1);
  const heads = headsOf(at, layer);
  const maps = heads.map((head) => queries.map((query) => attend(head, query, { causal: choice.causal }).weights));
  const panels = maps.map((map, head) => {
    const name = heads.length > 1 ? write("heads.head", { head }) : write("heads.only", { model: model.name });
    const isChosen = at === choice.model && layer === choice.layer && head === choice.head;
    const choose = button(name, () => change({ model: at, layer, head }), { "aria-pressed": isChosen });
    const known = model.layers[layer].known;
    return { isMean: false, model: at, map, panel: panelOf(map, name, choose, known && (known[head]?.[2] ?? "–")) };
  });
  if (heads.length < 2) return panels;
  const mean = maps[0].map((row, query) =>
    row.map((_, key) => maps.reduce((total, map) => total + map[query][key], 0) / maps.length),
  );
  const name = write("heads.mean", { heads: heads.length });
  return [...panels, { isMean: true, model: at, map: mean, panel: panelOf(mean, name, name, null) }];
}

function panelOf(map, name, title, pattern) {
  const known = pattern === null || pattern === undefined ? [] : [element("p", { class: "hint" }, pattern)];
  const top = token(findLargest(map[choice.query]));
  const drawn = drawMap(map, name);
  drawn.style.aspectRatio = map[0].length / map.length;
  return element("article", { class: "head" }, element("h3", {}, title), drawn, top, ...known);
}

// Rows of shades: how many times an equal share, in doublings. A key that is masked has none.
export function drawMap(map, name) {
  const row = map[choice.query];
  const top = findLargest(row);
  const shown = { name, query: tokenText(choice.query), top: tokenText(top), share: decimal(row[top]) };
  const made = element("div", { class: "map", role: "img", "aria-label": write("heads.map", shown) });
  for (const [query, weights] of map.entries()) {
    const open = choice.causal ? query + 1 : weights.length;
    const step = 100 / weights.length;
    const stops = weights.map((weight, at) => {
      const shade = Math.min(1, Math.max(0, Math.log2(weight * open) / Math.log2(MOST)));
      const below = Math.min(3, Math.floor(4 * shade));
      const part = (100 * (4 * shade - below)).toFixed(1);
      const colour = `color-mix(in srgb, var(--ramp-${below + 1}) ${part}%, var(--ramp-${below}))`;
      return `${choice.causal && at > query ? "var(--forbidden)" : colour} ${at * step}% ${(at + 1) * step}%`;
    });
    const line = element("div", { class: query === choice.query ? "row chosen" : "row" });
    line.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
    made.append(line);
  }
  return made;
}

function describeDifference(shown) {
  const heads = shown.filter((each) => !each.isMean && each.model === 0);
  const average = shown.find((each) => each.isMean && each.model === 0);
  if (!average) return [];
  const each = heads.reduce((total, { map }) => total + effectiveKeys(map[choice.query]), 0) / heads.length;
  return say("heads.different", {
    query: token(choice.query),
    n: new Set(heads.map(({ map }) => findLargest(map[choice.query]))).size,
    each: decimal(each, 2),
    mean: decimal(effectiveKeys(average.map[choice.query]), 2),
  });
}
