// A map of very many tokens: all of it as cells of many weights each, then, nearer, down to single weights.
import { groundOf, imageOf } from "./colour.js";
import { columnsOf } from "./content.js";
import { element } from "./dom.js";
import { cellAt } from "./painting.js";
import { NEAREST, Plot, READABLE } from "./plot.js";
import { change, keep, scaleOf, state } from "./state.js";

const cellsOfPixel = (side) => Math.max(1, Math.ceil(1 / (side * devicePixelRatio) - 1e-9));
const count = (number) => number.toLocaleString("en");

const HINTS_OF_LONG = [
  "Zoom in with +, Ctrl and the wheel, or the buttons, down to single weights; drag to move. Point at a cell to read it.",
  "Pinch or tap twice to zoom in, down to single weights; then drag to move. Tap to read a number.",
];

export class ZoomPlot extends Plot {
  constructor(...given) {
    super(...given);
    this.hints = HINTS_OF_LONG;
    this.faster = 2; // how much a key or a button zooms: there is far to go
    this.caption = element("p", { class: "hint", id: "window" });
    this.scales = [scaleOf(), this.scale]; // of single weights, and of the largest of many
    this.begin = Number(columnsOf(this.map).positions[0]);
    const { positions } = columnsOf(this.map.pooled);
    const placeOfBlock = (column) => Number.parseInt(positions[column], 10) - this.begin;
    this.first = this.cells.pooled.columnsThatGet(2).map(placeOfBlock);
  }

  // The window that a link names, else all of it.
  open() {
    const { window } = state;
    this.fit();
    this.shown = `${state.query} ${state.key}`; // a link's window stays, wherever its pair is
    if (window) this.frame(window);
  }

  frame([top, bottom, left, right]) {
    const side = Math.min(this.width / (right - left), this.height / (bottom - top));
    this.side = Math.min(Math.max(this.whole, side), NEAREST);
    Object.assign(this, { left: left * this.side, top: top * this.side });
    this.move(0, 0);
  }

  move(x, y) {
    super.move(x, y);
    keep({ window: this.side > this.whole ? this.window.map(Math.round) : null });
  }

  // The queries and the keys that are seen, each from and up to.
  get window() {
    const { top, left, side, width, height } = this;
    const { nRows, nColumns } = this.cells;
    return [top / side, Math.min(nRows, (top + height) / side), left / side, Math.min(nColumns, (left + width) / side)];
  }

  // How many queries, and keys, a cell stands for: as many as a pixel, or where these cannot be worked out at once, or
  // need not, those of the pooled cells.
  get block() {
    const { size } = this.cells;
    const pool = cellsOfPixel(this.side);
    return pool < size && this.cells.isQuick(...this.around(pool)) ? pool : size * cellsOfPixel(this.side * size);
  }

  // The window, begun and ended at whole cells.
  around(block) {
    const { nRows, nColumns } = this.cells;
    const [top, bottom, left, right] = this.window;
    const [row, column] = [top, left].map((at) => Math.floor(at / block) * block);
    const [below, beyond] = [bottom, right].map((at) => Math.ceil(at / block) * block);
    return [row, Math.min(nRows, below), column, Math.min(nColumns, beyond)];
  }

  // What is drawn: an image, where its first cell begins and how large each of its pixels is.
  picture() {
    const { cells, block, side } = this;
    const scale = this.scales[block >= cells.size ? 1 : 0];
    if (scale !== this.scale) {
      this.scale = scale;
      this.rescaled();
    }
    this.say(block);
    if (block >= cells.size) {
      const image = this.kept(groundOf(), block, () => imageOf(cells.pooled, scale, block / cells.size));
      const lead = cells.lead * side;
      return { image, left: -this.left - lead, top: -this.top - lead, side: side * block };
    }
    const window = this.around(block);
    const [row, , column] = window;
    const image = this.kept(`${[...window, block, groundOf()]}`, "tile", () =>
      imageOf(cells.tile(...window, block), scale),
    );
    return { image, left: column * side - this.left, top: row * side - this.top, side: side * block };
  }

  // The last image of a kind, as long as it is asked for anew.
  kept(key, kind, make) {
    if (this.images.get(kind)?.key !== key) this.images.set(kind, { key, image: make() });
    return this.images.get(kind).image;
  }

  say(block) {
    const [top, bottom, left, right] = this.window.map(Math.round);
    const stretch = (from, to) => `${count(this.begin + from)} to ${count(this.begin + to - 1)}`;
    const what =
      block === 1
        ? "each cell is a single weight"
        : `each cell is the largest of ${block} × ${block} weights. Zoom in to see them`;
    const said = `Queries ${stretch(top, bottom)}, keys ${stretch(left, right)}: ${what}.`;
    if (this.caption.textContent !== said) this.caption.textContent = said;
  }

  // Of a cell of many weights the pair with the largest.
  cellAt(event) {
    const cell = cellAt(this, event);
    return cell && this.strongest(cell);
  }

  strongest({ query, key }) {
    const { block } = this;
    if (block === 1) return { query, key };
    const lead = block < this.cells.size ? 0 : this.cells.lead;
    const [row, column] = [query, key].map((at) => Math.floor((at + lead) / block) * block - lead);
    return this.cells.strongestIn(row, column, block);
  }

  // Where the arrow keys begin.
  start() {
    const [top, bottom, left, right] = this.window;
    return this.strongest({ query: Math.floor((top + bottom) / 2), key: Math.floor((left + right) / 2) });
  }

  // To single weights at once: around the chosen pair, else the largest weight that is seen.
  approach() {
    const [top, bottom, left, right] = this.window.map(Math.floor);
    const cell = this.chosen() ?? this.cells.strongestWithin(top, bottom, left, right);
    change(cell);
    this.side = Math.max(this.whole, READABLE);
    Object.assign(this, { left: (cell.key + 0.5) * this.side - this.width / 2 });
    Object.assign(this, { top: (cell.query + 0.5) * this.side - this.height / 2 });
    this.move(0, 0);
  }

  // A pair that was chosen just now is brought into sight; one that was left behind while moving stays there.
  show() {
    const chosen = `${state.query} ${state.key}`;
    if (chosen !== this.shown) super.show();
    this.shown = chosen;
    this.plan();
  }
}
