// One map on a canvas, to be pointed at and chosen from. A map that is zoomed is larger than its frame, in which the browser
// scrolls as it does everywhere: the canvas stays where it is and shows the part that is in sight.
import { namesOf } from "./content.js";
import { element, nextFrame, write } from "./dom.js";
import { cellAt, layOut, paint } from "./painting.js";
import { change, state } from "./state.js";

export const FASTER = 1.5; // how much a key or a button zooms
const FAR = 10; // cells, by a page of the keyboard
const LARGEST_CELL = 60; // pixels, of a short text
const BELOW = 48; // pixels of the screen that a map leaves for what stands below it
const NEAREST = 60; // pixels of a cell when zoomed in most
const ZOOMS = { "+": FASTER, "=": FASTER, "-": 1 / FASTER };
const MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-FAR, 0],
  PageDown: [FAR, 0],
  Home: [0, Number.NEGATIVE_INFINITY],
  End: [0, Number.POSITIVE_INFINITY],
};

export class Plot {
  constructor(cells, map, scale, point) {
    Object.assign(this, { cells, map, scale, point, left: 0, top: 0, over: null, images: new Map() });
    Object.assign(this, namesOf(map));
    this.canvas = element("canvas", {
      class: "matrix",
      tabindex: 0,
      role: "application",
      "aria-roledescription": write("ui.matrix"),
      "aria-label": write("ui.plot", { ...map, n: cells.nRows, m: cells.nColumns }),
      onpointermove: (event) => this.point(cellAt(this, event)),
      onpointerleave: () => this.point(null),
      onclick: (event) => this.choose(cellAt(this, event)),
      onkeydown: (event) => this.key(event),
    });
    this.extent = element("div", {}, this.canvas);
    this.frame = element("div", { class: "wide frame", onscroll: () => this.scrolled() }, this.extent);
    this.pen = this.canvas.getContext("2d");
  }

  // Margins for the labels, the largest cells at which all of the map can be seen.
  fit() {
    const width = this.frame.parentElement.clientWidth;
    const above = this.frame.getBoundingClientRect().top + scrollY;
    layOut(this, width, Math.max(280, Math.min(width, innerHeight - above - BELOW, 1200)), 0, LARGEST_CELL);
    this.frame.style.width = this.canvas.style.width;
    this.zoom(1);
    paint(this); // at once: what is about to be printed has no next frame
  }

  // About the chosen cell where it is in sight, else the middle.
  zoom(factor) {
    const cell = this.chosen();
    const [x, y] = cell ? this.middleOf(cell.query, cell.key) : [-1, -1];
    const isSeen = x >= 0 && y >= 0 && x <= this.width && y <= this.height;
    const about = isSeen ? [x, y] : [this.width / 2, this.height / 2];
    const side = Math.min(Math.max(this.whole, this.side * factor), Math.max(NEAREST, this.whole));
    const [left, top] = [this.left, this.top].map((at, axis) => ((at + about[axis]) * side) / this.side - about[axis]);
    const grown = side - this.whole;
    this.side = side;
    const bar = grown ? this.frame.offsetHeight - this.frame.clientHeight : 0;
    this.frame.style.height = this.canvas.style.height;
    this.extent.style.width = `${this.canvas.clientWidth + this.cells.nColumns * grown + bar}px`;
    this.extent.style.height = `${this.canvas.clientHeight + this.cells.nRows * grown + bar}px`;
    this.frame.scrollTo(left, top);
    this.scrolled();
  }

  scrolled() {
    Object.assign(this, { left: this.frame.scrollLeft, top: this.frame.scrollTop });
    this.plan();
  }

  plan() {
    nextFrame(this, () => paint(this));
  }

  // A query alone, as a link may name it, stands for the cell that it gives most to; a key for what gives it most.
  chosen() {
    const { query, key } = state;
    if (query !== null && key !== null) return { query, key };
    if (query === null && key === null) return null;
    const [[row, column]] = [...this.cells.strongestOf(query, key, 1), [null]];
    return row === null ? null : { query: row, key: column };
  }

  // A second time takes it back.
  choose(cell) {
    const same = cell && cell.query === state.query && cell.key === state.key;
    if (cell) change(same ? { query: null, key: null } : cell);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.chosen();
    const within = (place, n) => Math.min(Math.max(0, place), n - 1);
    if (event.key in ZOOMS) this.zoom(ZOOMS[event.key]);
    else if (event.key === "Escape") change({ query: null, key: null });
    else if (event.key in MOVES) {
      const [down, right] = at ? MOVES[event.key] : [0, 0];
      const { query, key } = at ?? { query: 0, key: 0 };
      this.over = null;
      change({ query: within(query + down, this.cells.nRows), key: within(key + right, this.cells.nColumns) });
    } else return;
    event.preventDefault();
  }

  middleOf(row, column) {
    return [(column + 0.5) * this.side - this.left, (row + 0.5) * this.side - this.top];
  }

  // Brings the chosen cell into sight.
  show() {
    const cell = this.chosen();
    if (cell) {
      const [x, y] = this.middleOf(cell.query, cell.key);
      const beyond = (at, length) => (at < this.side / 2 ? at - this.side : Math.max(0, at + this.side - length));
      if (this.side > this.whole) this.frame.scrollBy(beyond(x, this.width), beyond(y, this.height));
    }
    this.plan();
  }
}
