// All maps of a picture at once, small, in the order of a measure; each opens large.
import { legend } from "./colour.js";
import { cellsOf, lineOfHead, maps, namesOf } from "./content.js";
import { button, byId, chooser, element, isolated, roving, tell, write } from "./dom.js";
import { cellAt, layOut, paint } from "./painting.js";
import { tellCell } from "./readout.js";
import { change, goTo, makers, orderOf, ordersOf, pictureOf, scaleOf, state } from "./state.js";

const SMALLEST_CELL = 5; // pixels, where its map has names of tokens
const TOLD = [2, 5]; // of the line of a head: behind its layer and number

export function overview(panel) {
  const picture = pictureOf();
  const look = { class: "maps", style: { "--columns": picture.columns } };
  const grid = element("div", { ...look, role: "group", "aria-label": picture.title });
  const orders = [...ordersOf(picture)].map(([name, { header }]) => [name, header]);
  if (orders.length && picture.maps.length > 1) {
    const sort = (name) => change({ sort: name }, true);
    byId("choosers").append(chooser(write("ui.sort"), [["", write("ui.by_place")], ...orders], state.sort, sort));
  }
  const { by, order } = orderOf(picture);
  const caption = (place) => [
    element("strong", {}, isolated(picture.titles[place])),
    ...(by ? [`: ${by.write(by.numbers[place])}`] : []),
    ...(picture.names[place] ? [" ", picture.names[place]] : []),
  ];
  const hint = () => tell(write("ui.open_map", maps[picture.maps[0]]));
  panel.append(element("h2", {}, isolated(by ? write("ui.sorted", by) : picture.title)), grid);
  const scale = scaleOf();
  const small = order.map((place) => new Thumbnail(picture, place, scale, { caption }, hint));
  grid.append(...small.map(({ button }) => button));
  roving(grid, ".map", () => getComputedStyle(grid).gridTemplateColumns.split(" ").length);
  drawAll(small);
  const forbids = picture.maps.some((number) => cellsOf(number).allowed);
  return {
    small,
    legend: () => legend(scale, forbids),
    mark: hint,
    draw: () => drawAll(small),
  };
}

makers.overview = overview;

export class Thumbnail {
  constructor(picture, place, scale, { caption, smallest = SMALLEST_CELL, largest, pair }, rest) {
    const number = picture.maps[place];
    const cells = cellsOf(number);
    Object.assign(this, { number, cells, scale, map: maps[number], ...namesOf(maps[number]) });
    Object.assign(this, { smallest, largest, pair, lit: null, over: null, chosen: () => null });
    Object.assign(this, { left: 0, top: 0, images: new Map(), isSmall: true });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.pen = this.canvas.getContext("2d");
    // What it shows, for those who do not see it: also what the head looks at, and its strongest pair.
    const { shown = [], columns } = lineOfHead(this.map) ?? {};
    const told = shown.map((written, at) => `${columns[at].header} ${written} ${columns[at].unit}`.trim());
    const words = [this.map.title, picture.names[place], told.slice(...TOLD).join(", ")].filter(Boolean).join(". ");
    const label = element("span", { class: "caption" }, ...caption(place));
    const attributes = { class: "map", "aria-current": number === state.map ? "true" : null, "aria-label": words };
    this.button = button([this.canvas, label], () => goTo(number, { view: "matrix" }), attributes);
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
    layOut(this, width, Number.POSITIVE_INFINITY, this.smallest, this.largest);
    paint(this);
  }
}

// All are measured first, so that the page is laid out once and not for each.
export function drawAll(small) {
  const widths = small.map(({ button }) => button.clientWidth - 6);
  for (const [at, each] of small.entries()) each.draw(widths[at]);
}
