// Queries on the left, keys on the right, a line for each weight above a threshold; several heads by colour.
import { legend, placeOfCell, unitOf } from "./colour.js";
import {
  cellsOf,
  columnsOf,
  hasQueries,
  isDifference,
  isLayered,
  isLift,
  maps,
  readyCells,
  rowsOf,
  tokenOf,
} from "./content.js";
import { colourOf, drawing, element, isolated, named, roving, watch } from "./dom.js";
import { nameOfColumn, nameOfRow, said, still, tell } from "./readout.js";
import { change, mapOf, pictureOf, scaleOf, state } from "./state.js";

const MOST_HEADS = 6; // colours that can be told apart
const MOST_LINES = 3000; // that a browser draws at once
const PITCH = 22; // pixels from token to token
const SHORT = 60; // queries, of which each may have as many lines as it likes
const MOST_OF_QUERY = 3; // lines in longer texts, where more are one grey fan

// Those that were chosen and have the same queries and keys as the map, else the map itself.
export function headsOfLines() {
  const heads = state.heads.filter((number) => pictureOf().maps.includes(number) && isAlike(number));
  return heads.length ? heads.slice(0, MOST_HEADS) : [state.map];
}

const isAlike = (number) => maps[number].rows === mapOf().rows && maps[number].columns === mapOf().columns;

export async function lines(panel) {
  const map = mapOf();
  if (!hasQueries(map) || isDifference(scaleOf())) {
    panel.append("Lines are drawn of weights from queries to keys; see “Map and text”.");
    return still("");
  }
  state.heads = headsOfLines();
  await Promise.all(state.heads.map(cellsOf));
  const chart = new Chart(map);
  panel.append(
    headsChooser(),
    thresholdChooser(() => chart.draw()),
    chart.said,
    chart.box,
  );
  chart.draw();
  const scale = scaleOfLines();
  const of = isLift(scale) ? scale.label : "attention weight (0 to 1)";
  const label = `line: ${of}, opacity in proportion; each colour is one head`;
  const paint = (place) => `color-mix(in srgb, ${colourOf("--ink")} ${100 * place}%, ${colourOf("--paper")})`;
  return { legend: () => legend(scale, [paint], label, false), mark: () => chart.mark(), draw: () => chart.draw() };
}

// Lines show multiples of an equal share where the maps do, else weights from 0 to 1.
const scaleOfLines = () => (isLift(scaleOf()) ? scaleOf() : { low: 0, high: 1 });

// The heads beside the map's own: of its layer, or all that the picture has.
function headsChooser() {
  const layer = mapOf().layer;
  const offered = pictureOf().maps.filter(
    (each) => isAlike(each) && (!isLayered(pictureOf()) || maps[each].layer === layer),
  );
  const all = [...new Set([...state.heads, ...offered])].sort((a, b) => a - b);
  const group = element("div", { class: "chips", role: "group", "aria-label": "heads that are drawn" });
  for (const number of all) {
    const place = state.heads.indexOf(number);
    const toggle = () => {
      const without = state.heads.filter((each) => each !== number);
      change({ heads: place < 0 ? [...state.heads, number] : without.length ? without : [number] }, true);
    };
    const full = place < 0 && state.heads.length >= MOST_HEADS;
    const attributes = { type: "button", class: "chip", id: `chip-${number}`, "aria-pressed": place >= 0 };
    if (full) attributes["aria-disabled"] = "true";
    else attributes.onclick = toggle;
    const chip = element("button", attributes, isLayered(pictureOf()) ? headOf(number) : maps[number].title);
    chip.style.setProperty("--line", `var(--head-${place})`);
    group.append(chip);
  }
  if (state.heads.length >= MOST_HEADS) group.append(element("span", { class: "hint" }, `${MOST_HEADS} at a time`));
  roving(group, ".chip");
  return group;
}

const headOf = (number) => {
  const { layer, head, title } = maps[number];
  if (layer !== mapOf().layer) return title;
  return head === "mean" ? head : `head ${head}`;
};

function thresholdChooser(draw) {
  const lift = isLift(scaleOf());
  const written = () => (lift ? `${state.threshold} ×` : state.threshold.toFixed(2));
  const shown = element("output", {}, written());
  const slide = () => {
    change({ threshold: Number(slider.value) });
    shown.textContent = written();
    draw();
  };
  const [min, max, step] = lift ? [1, scaleOf().high, 0.25] : [0.01, 1, 0.01];
  const bounds = { type: "range", min, max, step, value: state.threshold };
  const slider = element("input", { ...bounds, oninput: slide });
  return element("label", { class: "chooser slider" }, element("span", {}, "hide below"), slider, shown);
}

// Of cells in the order of their strength.
function strongestOfEach(cells) {
  const drawn = new Map();
  return cells.filter(([row]) => {
    drawn.set(row, (drawn.get(row) ?? 0) + 1);
    return drawn.get(row) <= MOST_OF_QUERY;
  });
}

class Chart {
  constructor(map) {
    this.map = map;
    this.said = element("p", { class: "hint" });
    this.lists = { query: this.labels(rowsOf(map), "query"), key: this.labels(columnsOf(map), "key") };
    this.all = drawing("svg", { role: "img", preserveAspectRatio: "none" });
    this.some = drawing("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
    const head = (text) => element("span", { class: "axis" }, text);
    this.box = element("div", { class: "lines" }, head(map.row_axis), head(""), head(map.column_axis));
    this.box.append(this.lists.query, element("div", { class: "crossing" }, this.all, this.some), this.lists.key);
    this.over = null;
  }

  labels({ labels, positions }, kind) {
    const list = element("div", { class: `tokens ${kind}`, role: "group", "aria-label": `each ${kind}` });
    for (const [place, label] of labels.entries()) {
      const number = element("span", { class: "position" }, positions[place]);
      list.append(element("button", { type: "button", "data-place": place }, number, isolated(label)));
    }
    roving(list, "button");
    const point = (place) => this.point(place === null ? null : { kind, place });
    watch(list, point, (place) => this.choose(kind, place));
    return list;
  }

  choose(kind, place) {
    const other = kind === "query" ? "key" : "query";
    change({ [kind]: state[kind] === place && state[other] === null ? null : place, [other]: null });
  }

  point(over) {
    this.over = over;
    this.mark();
  }

  // All lines above the threshold, the strongest of very many.
  draw() {
    this.scale = scaleOfLines();
    this.found = state.heads.map((number) => {
      const cells = readyCells(number);
      return cells.above(state.threshold, (row) => unitOf(cells, row, this.scale));
    });
    const total = this.found.reduce((sum, each) => sum + each.length, 0);
    const isLong = rowsOf(this.map).labels.length > SHORT;
    if (isLong) this.found = this.found.map(strongestOfEach);
    const left = this.found.reduce((sum, each) => sum + each.length, 0);
    const share = Math.floor(MOST_LINES / state.heads.length);
    const shown = this.found.map((each) => each.slice(0, left > MOST_LINES ? share : each.length));
    const n = shown.reduce((sum, each) => sum + each.length, 0);
    const count = (number) => number.toLocaleString("en");
    const pairs = this.found[0]
      .slice(0, 3)
      .map(([row, column]) => `${nameOfRow(this.map, row)} → ${nameOfColumn(this.map, column)}`);
    this.all.setAttribute(
      "aria-label",
      `${n} lines of ${maps[state.heads[0]].title} and others chosen; the strongest: ${pairs.join(", ")}`,
    );
    this.said.textContent =
      n < total
        ? `The strongest ${count(n)} of ${count(total)} lines are drawn${isLong ? `, of each query at most ${MOST_OF_QUERY} a head` : ""}.`
        : `${count(n)} ${n === 1 ? "line" : "lines"}`;
    const height = PITCH * Math.max(rowsOf(this.map).labels.length, columnsOf(this.map).labels.length);
    for (const picture of [this.all, this.some]) {
      picture.setAttribute("viewBox", `0 0 100 ${height}`);
      picture.setAttribute("height", height);
    }
    this.all.replaceChildren(...shown.flatMap((cells, place) => cells.map((cell) => this.line(place, cell))));
    this.mark();
  }

  line(place, [row, column]) {
    const opacity = placeOfCell(readyCells(state.heads[place]), row, column, this.scale);
    const shift = (place - (state.heads.length - 1) / 2) * 2; // so that lines of several heads lie beside each other
    const [from, to] = [row, column].map((at) => (at + 0.5) * PITCH + shift);
    const ends = { x1: 0, y1: from, x2: 100, y2: to };
    return drawing("line", { ...ends, stroke: `var(--head-${place})`, "stroke-opacity": opacity.toFixed(4) });
  }

  mark() {
    const chosen = state.query !== null ? { kind: "query", place: state.query } : { kind: "key", place: state.key };
    const current = this.over ?? (chosen.place === null ? null : chosen);
    this.box.querySelector("[aria-current]")?.removeAttribute("aria-current");
    if (current) this.lists[current.kind].children[current.place].setAttribute("aria-current", "true");
    this.all.classList.toggle("pale", current !== null);
    const isOf = ([row, column]) => (current.kind === "query" ? row : column) === current.place;
    const own = current
      ? this.found.flatMap((cells, place) => cells.filter(isOf).map((cell) => this.line(place, cell)))
      : [];
    this.some.replaceChildren(...own);
    this.tell(current);
  }

  tell(current) {
    if (!current) return tell("Point at a query or a key to see its lines alone and to read their numbers.");
    const { kind, place } = current;
    const isQuery = kind === "query";
    const [own, others] = isQuery ? [rowsOf, columnsOf] : [columnsOf, rowsOf];
    const parts = [kind, " ", named(tokenOf(place, own(this.map))), isQuery ? " attends to" : " is attended to by"];
    for (const number of state.heads) {
      const cells = readyCells(number);
      const [best] = cells.strongestOf(isQuery ? place : null, place, 1);
      if (!best) continue;
      const there = named(tokenOf(best[isQuery ? 1 : 0], others(this.map)));
      parts.push(` · ${maps[number].title}: most `, there, ` ${said(cells, ...best)}`);
    }
    return tell(...parts);
  }
}
