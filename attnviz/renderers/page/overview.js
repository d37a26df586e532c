// All maps of a picture at once, small, as cells or as lines, in the order of a measure; each opens large.
import { legend, paintOf } from "./colour.js";
import { cellsOf, content, hasQueries, isDifference, maps, nameIn, readyCells, wholeMaps } from "./content.js";
import { byId, chooser, colourOf, element, isolated, roving } from "./dom.js";
import { cellAt, layOut, paint } from "./painting.js";
import { namesOf, tell, tellCell } from "./readout.js";
import { change, pictureOf, scaleOf, state } from "./state.js";
import { long } from "./views.js";

const SMALLEST_CELL = 5; // pixels, where its map has names of tokens
const KINDS = ["cells", "lines"];

export async function overview(panel) {
  const picture = pictureOf();
  const promised = picture.maps.map(cellsOf); // all at once: the browser unpacks beside the script
  const grid = element("div", { class: "maps", role: "group", "aria-label": picture.title });
  grid.style.setProperty("--columns", picture.columns);
  const [first] = picture.maps.map((number) => maps[number]);
  const ways = waysOf(picture, scaleOf());
  const [from, to] = ways.draw === "lines" ? ["Left", "Right"] : ["Rows", "Columns"];
  const hint = `${from}: ${first.row_axis}. ${to}: ${first.column_axis}. Choose a map to open it.`;
  grid.classList.toggle("edged", ways.edged);
  byId("choosers").append(...ways.choosers);
  panel.append(element("h2", {}, isolated(ways.title)), grid);
  const several = (await Promise.all(promised)).filter((_, place) => wholeMaps[picture.maps[place]].factors);
  const scale = ways.draw === "cells" && several.length ? long.scaleOfLargest(scaleOf(), several) : scaleOf();
  const small = ways.order.map((place) => new Thumbnail(picture, place, scale, ways, () => tell(hint)));
  grid.append(...(ways.edged ? withEdges(small, picture.edges) : small.map(({ button }) => button)));
  const isEdged = () => grid.querySelector(".edge")?.checkVisibility() ?? false;
  roving(grid, ".map", () => getComputedStyle(grid).gridTemplateColumns.split(" ").length - (isEdged() ? 1 : 0));
  for (const each of small) each.draw();
  const forbids = picture.maps.some((number) => readyCells(number).allowed);
  return {
    legend: () => legend(scale, [ways.draw === "lines" ? paintOfLines : paintOf(scale)], scale.label, forbids),
    mark: () => tell(hint),
    draw: () => {
      for (const each of small) each.draw();
    },
  };
}

// What rows and columns are called is said once, at the edges.
function withEdges(small, { row_axis, column_axis, rows, columns }) {
  const edge = (kind, name) => element("span", { class: `edge ${kind}`, "aria-hidden": "true" }, isolated(name));
  const named = (kind, axis) => (name, place) => edge(kind, place ? name : `${axis} ${name}`);
  const [across, down] = [columns.map(named("above", column_axis)), rows.map(named("beside", row_axis))];
  const inRows = small.flatMap(({ button }, at) =>
    at % columns.length ? [button] : [down[at / columns.length], button],
  );
  return [edge("", ""), ...across, ...inRows];
}

const paintOfLines = (place) => `color-mix(in srgb, ${colourOf("--head-0")} ${100 * place}%, ${colourOf("--paper")})`;

const placeIn = ({ edges, titles, maps: numbers }, place) => {
  const { layer, head } = maps[numbers[place]];
  return edges ? `${layer}.${head}` : titles[place];
};

// By which measure a picture's maps are sorted, and the places of its maps in that order; nothing where it is by place.
export function orderOf(picture) {
  const table = content.tables.find(({ role }) => role === "heads");
  const isOf = ({ layer, head }, row) => row[0] === layer && row[1] === head;
  const rows = picture.maps.map((number) => table?.rows.find((row) => isOf(maps[number], row)));
  const measures = rows.every(Boolean)
    ? table.columns.map((_, place) => place).filter((place) => place > 1 && table.numeric[place])
    : [];
  const column = measures.includes(state.sort) ? state.sort : null;
  const order = picture.maps.map((_, place) => place);
  if (column !== null) order.sort((a, b) => rows[b][column] - rows[a][column] || a - b);
  return { table, rows, measures, column, order };
}

// What maps may be sorted by and drawn as, how they are, and what chooses it.
function waysOf(picture, scale) {
  const { table, rows, measures, column, order } = orderOf(picture);
  const choosers = [];
  if (measures.length && order.length > 1) {
    const options = [[-1, "layer, head"], ...measures.map((place) => [place, table.columns[place].header])];
    choosers.push(chooser("Sort by", options, state.sort, (sort) => change({ sort }, true)));
  }
  const hasLines = !isDifference(scale) && picture.maps.every((number) => hasQueries(maps[number]));
  if (hasLines) {
    const draw = (kind) => change({ draw: KINDS[kind] }, true);
    choosers.push(chooser("Draw", [...KINDS.entries()], KINDS.indexOf(state.draw), draw));
  }
  const edged = column === null && picture.edges !== null;
  const caption = (place) => [
    element("span", { class: "place" }, isolated(placeIn(picture, place))),
    ...(nameIn(picture, place) ? [" ", nameIn(picture, place)] : []),
    ...(column === null ? [] : [` · ${Number(rows[place][column].toPrecision(3))}`]),
  ];
  const title = column === null ? picture.title : `by ${table.columns[column].header}, the largest first`;
  return { order, choosers, caption, title, edged, draw: hasLines ? state.draw : "cells" };
}

function openLarge(number, drawn) {
  const view = drawn === "lines" ? "lines" : "matrix";
  change({ view, map: number, query: null, key: null, window: null, heads: [number] }, true);
}

export class Thumbnail {
  constructor(picture, place, scale, { caption, draw, open = openLarge, isBare = draw === "lines" }, rest) {
    const number = picture.maps[place];
    const cells = readyCells(number);
    Object.assign(this, { number, cells, scale, map: maps[number], ...namesOf(maps[number]) });
    Object.assign(this, { drawn: draw, isBare, left: 0, top: 0, over: null, images: new Map(), chosen: () => null });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.pen = this.canvas.getContext("2d");
    const words = [this.map.title, nameIn(picture, place), this.map.words].filter(Boolean).join(". ");
    const label = element("span", { class: "caption" }, ...caption(place));
    const attributes = { class: "map", "aria-current": number === state.map ? "true" : null, "aria-label": words };
    const onclick = () => open(number, draw);
    this.button = element("button", { type: "button", ...attributes, onclick }, this.canvas, label);
    this.button.addEventListener("focus", () => tell(words));
    this.button.addEventListener("pointermove", (event) => this.point(event, () => tell(words)));
    this.button.addEventListener("pointerleave", () => this.point(null, rest));
  }

  // `otherwise` is done where it is no cell that is pointed at.
  point(event, otherwise) {
    const isCell = event?.target === this.canvas && this.drawn === "cells";
    this.over = isCell ? cellAt(this, event) : null;
    if (this.over) tellCell(this.map, this.cells, this.over.query, this.over.key);
    else otherwise();
    paint(this);
  }

  draw() {
    const width = this.button.clientWidth - 6;
    layOut(this, width, Number.POSITIVE_INFINITY, this.isBare ? Number.POSITIVE_INFINITY : SMALLEST_CELL);
    paint(this);
  }
}
