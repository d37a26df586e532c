// Every head of a layer, their mean, and the one head of another model, over the same sentence.

import { button, byId, element, say, write } from "../../../renderers/page/dom.js";
import { attend, effectiveKeys, findLargest, mean } from "./arithmetic.js";
import { change, choice, onChange, positions, queries, WHICH_ROW } from "./choice.js";
import { decimal, renew } from "./parts.js";
import { lesson, paragraph, token, tokenText } from "./phrases.js";

const MOST = Math.min(16, positions.length); // equal shares, of the strongest shade: few keys give no more

export function headsSection() {
  const place = byId("sizes");
  const [model, other] = lesson.models;
  const sizes = { model: model.name, width: model.dModel, heads: model.nHeads, d: model.layers[0].heads[0].size };
  const apart = other?.nParameters && decimal(100 * Math.abs(model.nParameters / other?.nParameters - 1), 1);
  if (apart) place.append(paragraph("heads.same", { ...sizes, other: other.name, apart }));
  else if (!other) place.append(paragraph("heads.alone", sizes));
  place.append(paragraph("heads.lead", { most: MOST }));
  onChange(WHICH_ROW, () => {
    const maps = lesson.models.map(mapsOf);
    renew(byId("grid"), maps.flatMap(panelsOf));
    byId("different").replaceChildren(...describeDifference(maps[0]));
  });
}

const layerOf = (model) => Math.min(choice.layer, model.layers.length - 1);

// [head][query][key] of the layer that is chosen.
function mapsOf(model) {
  return model.layers[layerOf(model)].heads.map((head) => queries.map((query) => attend(head, query).weights));
}

function panelsOf(maps, at) {
  const model = lesson.models[at];
  const layer = layerOf(model);
  const { known } = model.layers[layer];
  const panels = maps.map((map, head) => {
    const name = maps.length > 1 ? write("heads.head", { head }) : write("heads.only", { model: model.name });
    const isChosen = at === choice.model && layer === choice.layer && head === choice.head;
    const choose = button(name, () => change({ model: at, layer, head }), { "aria-pressed": isChosen });
    return panelOf(map, name, choose, known ? (known[head]?.[2] ?? "–") : "");
  });
  if (maps.length > 1) {
    const name = write("heads.mean", { heads: maps.length });
    const means = queries.map((query) => mean(maps.map((map) => map[query])));
    panels.push(panelOf(means, name, name));
  }
  return panels;
}

function panelOf(map, name, title, pattern = "") {
  const top = token(findLargest(map[choice.query]));
  const known = element("p", { class: "hint" }, pattern);
  const drawn = drawMap(map, name);
  drawn.style.aspectRatio = map[0].length / map.length;
  return element("article", { class: "head" }, element("h3", {}, title), drawn, top, known);
}

// Rows of shades: how many times an equal share, in doublings.
export function drawMap(map, name) {
  const row = map[choice.query];
  const top = findLargest(row);
  const shown = { name, query: tokenText(choice.query), top: tokenText(top), share: decimal(row[top]) };
  const made = element("div", { class: "map", role: "img", "aria-label": write("heads.map", shown) });
  for (const [query, weights] of map.entries()) {
    const step = 100 / weights.length;
    const stops = weights.map((weight, at) => {
      const shade = Math.min(1, Math.max(0, Math.log2(weight * weights.length) / Math.log2(MOST) || 0));
      const below = Math.min(3, Math.floor(4 * shade));
      const part = (100 * (4 * shade - below)).toFixed(1);
      const colour = `color-mix(in srgb, var(--ramp-${below + 1}) ${part}%, var(--ramp-${below}))`;
      return `${colour} ${at * step}% ${(at + 1) * step}%`;
    });
    const line = element("div", { class: query === choice.query ? "row chosen" : "row" });
    line.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
    made.append(line);
  }
  return made;
}

// A word that stands there twice, as with another first letter, is one.
const countWords = (places) => new Set(places.map((at) => lesson.tokens[at].piece.trim().toLowerCase())).size;

function describeDifference(maps) {
  if (maps.length < 2) return [];
  const rows = maps.map((map) => map[choice.query]);
  return say("heads.different", {
    query: token(choice.query),
    n: countWords(rows.map(findLargest)),
    words: countWords(positions),
    each: decimal(rows.reduce((total, row) => total + effectiveKeys(row), 0) / rows.length, 2),
    mean: decimal(effectiveKeys(mean(rows)), 2),
  });
}
