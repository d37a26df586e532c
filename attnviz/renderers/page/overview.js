// All maps of a picture at once, small, in the order of a measure; each opens large.
import { legend, paintOf } from "./colour.js";
import { cellsOf, hasQueries, lineOfHead, maps, nameIn, readyCells, rowsOf } from "./content.js";
import { byId, chooser, element, isolated, named, roving } from "./dom.js";
import { cellAt, layOut, paint } from "./painting.js";
import { nameOfColumn, nameOfRow, namesOf, tell, tellCell } from "./readout.js";
import { orderOf, ordersOf } from "./sorting.js";
import { change, mapOf, pictureOf, scaleOf, state } from "./state.js";

const SMALLEST_CELL = 5; // pixels, where its map has names of tokens
const MOST_LIT = 48; // queries, of which one can be seen in a small map
const N_TOLD = 3; // of a head's numbers at either end of its line
const BY_PLACE = -1; // of maps that are not sorted

export async function overview(panel) {
  const picture = pictureOf();
  const promised = Promise.all(picture.maps.map(cellsOf)); // all at once: the browser unpacks beside the script
  const grid = element("div", { class: "maps", role: "group", "aria-label": picture.title });
  grid.style.setProperty("--columns", picture.columns);
  const [first] = picture.maps.map((number) => maps[number]);
  byId("choosers").append(sorterOf(picture));
  await promised;
  const ways = waysOf(picture);
  const axes = `Rows: ${first.row_axis}. Columns: ${first.column_axis}. Choose a map to open it.`;
  const hint = () => tell(...(litIn(first) ? saidOfLit(first) : [axes]));
  grid.classList.toggle("edged", ways.edged);
  panel.append(element("h2", {}, isolated(ways.title)), grid);
  const scale = scaleOf();
  const small = ways.order.map((place) => new Thumbnail(picture, place, scale, ways, hint));
  grid.append(...(ways.edged ? withEdges(small, picture.edges) : small.map(({ button }) => button)));
  const isEdged = () => grid.querySelector(".edge")?.checkVisibility() ?? false;
  roving(grid, ".map", () => getComputedStyle(grid).gridTemplateColumns.split(" ").length - (isEdged() ? 1 : 0));
  grid.addEventListener("keydown", ({ key }) => key === "Escape" && change({ query: null, key: null }, true));
  drawAll(small);
  const forbids = picture.maps.some((number) => readyCells(number).allowed);
  return {
    legend: () => legend(scale, [paintOf(scale)], scale.label, forbids),
    mark: hint,
    draw: () => drawAll(small),
  };
}

// What rows and columns are called is said once, at the edges.
function withEdges(small, { row_axis, column_axis, rows, columns }) {
  const edge = (kind, name) => element("span", { class: `edge ${kind}`, "aria-hidden": "true" }, isolated(name));
  const along = (kind, axis) => (name, place) => edge(kind, place ? name : `${axis} ${name}`);
  const [across, down] = [columns.map(along("above", column_axis)), rows.map(along("beside", row_axis))];
  const inRows = small.flatMap(({ button }, at) =>
    at % columns.length ? [button] : [down[at / columns.length], button],
  );
  return [edge("", ""), ...across, ...inRows];
}

const placeIn = ({ edges, titles, maps: numbers }, place) => {
  const { layer, head } = maps[numbers[place]];
  return edges ? `${layer}.${head}` : titles[place];
};

export const canBeLit = (map) => hasQueries(map) && rowsOf(map).labels.length <= MOST_LIT;

// Of a word that is chosen, its row or its column in each map.
export const litIn = (map) =>
  canBeLit(map) && map.rows === mapOf().rows && (state.query === null) !== (state.key === null)
    ? { query: state.query, key: state.key, word: true }
    : null;

function saidOfLit(map) {
  const ofQuery = state.query !== null;
  const word = named(ofQuery ? nameOfRow(map, state.query) : nameOfColumn(map, state.key));
  const what = ofQuery ? ["what ", word, " attends to"] : ["what attends to ", word];
  return ["Lit up: ", ...what, ". Choose a map to open it; Escape shows all of each again."];
}

// What chooses by what maps are sorted.
function sorterOf(picture) {
  const orders = [...ordersOf(picture)].map(([name, { header }]) => [name, header]);
  if (!orders.length || picture.maps.length < 2) return "";
  const sort = (name) => change({ sort: name }, true);
  return chooser("Sort by", [[BY_PLACE, "layer, head"], ...orders], state.sort, sort);
}

// In which order maps stand, and what they are called.
function waysOf(picture) {
  const { by, order, numbers } = orderOf(picture);
  const edged = !by && picture.edges !== null;
  const caption = (place) => [
    element("span", { class: "place" }, isolated(placeIn(picture, place))),
    ...(numbers ? [`: ${by.write(numbers[place])}`] : []),
    ...(nameIn(picture, place) ? [" ", nameIn(picture, place)] : []),
  ];
  const title = by ? `by ${by.header}${numbers ? ", the largest first" : ""}` : picture.title;
  return { order, caption, title, edged };
}

// What was chosen stays, where the map has the same queries and keys.
function openLarge(number) {
  const [map, other] = [mapOf(), maps[number]];
  const alike = map.rows === other.rows && map.columns === other.columns;
  const chosen = alike ? {} : { query: null, key: null };
  change({ view: "matrix", map: number, heads: [number], ...chosen }, true);
}

// What a small picture of a head shows, for those who do not see it: the first and the last of its numbers.
function toldOf(map) {
  const line = lineOfHead(map);
  if (!line) return "";
  const told = line.columns.map(({ header, unit }, at) => `${header} ${line.shown[at] ?? line.row[at]} ${unit}`.trim());
  const [first, last] = [told.slice(2, 2 + N_TOLD), told.slice(Math.max(2 + N_TOLD, told.length - N_TOLD))];
  return [...first, ...last].join(", ");
}

export class Thumbnail {
  constructor(picture, place, scale, { caption, open = openLarge, isBare = false }, rest) {
    const number = picture.maps[place];
    const cells = readyCells(number);
    Object.assign(this, { number, cells, scale, map: maps[number], ...namesOf(maps[number]) });
    const lit = isBare ? null : litIn(maps[number]);
    Object.assign(this, { isBare, lit, over: lit, chosen: () => null });
    Object.assign(this, { left: 0, top: 0, images: new Map() });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.pen = this.canvas.getContext("2d");
    const words = [this.map.title, nameIn(picture, place), toldOf(this.map)].filter(Boolean).join(". ");
    const label = element("span", { class: "caption" }, ...caption(place));
    const attributes = { class: "map", "aria-current": number === state.map ? "true" : null, "aria-label": words };
    const onclick = () => open(number);
    this.button = element("button", { type: "button", ...attributes, onclick }, this.canvas, label);
    this.button.addEventListener("focus", () => tell(words));
    this.button.addEventListener("pointermove", (event) => this.point(event, () => tell(words)));
    this.button.addEventListener("pointerleave", () => this.point(null, rest));
  }

  // `otherwise` is done where it is no cell that is pointed at.
  point(event, otherwise) {
    const cell = event?.target === this.canvas ? cellAt(this, event) : null;
    this.over = cell ?? this.lit;
    if (cell) tellCell(this.map, this.cells, cell.query, cell.key);
    else otherwise();
    paint(this);
  }

  draw(width) {
    layOut(this, width, Number.POSITIVE_INFINITY, this.isBare ? Number.POSITIVE_INFINITY : SMALLEST_CELL);
    paint(this);
  }
}

// All are measured first, so that the page is laid out once and not for each.
export function drawAll(small) {
  const widths = small.map(({ button }) => button.clientWidth - 6);
  for (const [at, each] of small.entries()) each.draw(widths[at]);
}
