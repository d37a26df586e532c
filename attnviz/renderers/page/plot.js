// One map on a canvas: pointed at, zoomed, moved, by mouse and by finger; the same with the keyboard.
import { element, nextFrame } from "./dom.js";
import { cellAt, layOut, paint } from "./painting.js";
import { namesOf } from "./readout.js";
import { change, state } from "./state.js";

export const FASTER = 1.5; // how much a key or a button zooms
const FAR = 10; // cells, by a page of the keyboard
const LARGEST_CELL = 60; // pixels, of a short text
const BELOW = 48; // pixels of the screen that a map leaves for what stands below it
const NEAREST = 60; // pixels of a cell when zoomed in most
const [TWICE, NEAR] = [300, 30]; // milliseconds and pixels at most between the two taps of a double tap
const READABLE = 24; // pixels of a cell where labels can be read

// The middle of what holds the map, and how far apart two fingers are; a third one is not heeded.
function gripOf(pointers) {
  const [one, other = one] = pointers.values();
  const apart = Math.max(20, Math.hypot(one.x - other.x, one.y - other.y)); // two that touch each other zoom no further
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2, apart };
}

export class Plot {
  constructor(cells, map, scale, point) {
    Object.assign(this, { cells, map, scale, point, left: 0, top: 0, over: null, images: new Map() });
    Object.assign(this, { ...namesOf(map), titled: true });
    const size = `${cells.nRows} rows, ${cells.nColumns} columns`;
    this.canvas = element("canvas", {
      class: "matrix",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "attention matrix",
      "aria-label": `${map.title}. Rows: ${map.row_axis}; columns: ${map.column_axis}. ${size}. Arrow keys move.`,
      onpointermove: (event) => this.pointed(event),
      onpointerdown: (event) => this.pressed(event),
      onpointerup: (event) => this.released(event),
      onpointercancel: (event) => this.lifted(event),
      onpointerleave: () => this.point(null),
      onkeydown: (event) => this.key(event),
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.pointers = new Map(); // mouse button or fingers that are down, each with its last place
    this.press = null; // where the only one of them began: a choice, if it does not move
    this.tapped = null;
    this.pen = this.canvas.getContext("2d");
  }

  // Margins for the labels, the largest cells at which all of the map can be seen.
  fit(onlyIfWhole = false) {
    const width = this.canvas.parentElement.clientWidth;
    const above = this.canvas.getBoundingClientRect().top + scrollY;
    const tallest = Math.max(280, Math.min(width, innerHeight - above - BELOW, 1200));
    const [side, left, top] = [this.side, this.left, this.top];
    const before = this.whole;
    layOut(this, width, tallest, 0, LARGEST_CELL);
    if (onlyIfWhole && side !== before) Object.assign(this, { side, left, top });
    this.move(0, 0);
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const side = Math.min(Math.max(this.whole, this.side * factor), Math.max(NEAREST, this.whole));
    this.left = ((this.left + x) * side) / this.side - x;
    this.top = ((this.top + y) * side) / this.side - y;
    this.side = side;
    this.move(0, 0);
  }

  // About the chosen cell where it is in sight, else the middle.
  zoomToChosen(factor) {
    const cell = this.chosen();
    const [x, y] = cell ? this.middleOf(cell.query, cell.key) : [-1, -1];
    const isSeen = x >= 0 && y >= 0 && x <= this.width && y <= this.height;
    this.zoom(factor, ...(isSeen ? [x, y] : []));
  }

  move(x, y) {
    const { nRows, nColumns } = this.cells;
    this.left = Math.min(Math.max(0, this.left + x), Math.max(0, nColumns * this.side - this.width));
    this.top = Math.min(Math.max(0, this.top + y), Math.max(0, nRows * this.side - this.height));
    this.canvas.classList.toggle("zoomed", this.side > this.whole);
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

  // Pans with one pointer and zooms with two, by what changed since the last event: fingers may come and go between.
  pointed(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) return this.point(cellAt(this, event));
    const before = gripOf(this.pointers);
    Object.assign(pointer, { x: event.offsetX, y: event.offsetY });
    const now = gripOf(this.pointers);
    if (this.press && !this.isStill(event)) this.press = null;
    if (this.pointers.size === 1 && this.side === this.whole) return this.point(cellAt(this, event));
    if (this.press) return;
    if (this.pointers.size > 1) this.zoom(now.apart / before.apart, before.x - this.gutter, before.y - this.head);
    this.move(before.x - now.x, before.y - now.y);
  }

  pressed(event) {
    if (event.button !== 0) return; // of a press that opens a menu the end may not be told
    this.canvas.setPointerCapture(event.pointerId);
    const place = { x: event.offsetX, y: event.offsetY };
    this.press = this.pointers.size ? null : place;
    this.pointers.set(event.pointerId, { ...place });
    this.point(this.press && cellAt(this, event));
  }

  lifted({ pointerId }) {
    this.pointers.delete(pointerId);
    this.press = null;
  }

  isStill({ offsetX, offsetY, pointerType }) {
    const shake = pointerType === "mouse" ? 4 : 10; // pixels: a finger is not as still as a mouse
    return Math.hypot(offsetX - this.press.x, offsetY - this.press.y) <= shake;
  }

  // A press that did not move is a choice; a second one on the same cell takes it back.
  released(event) {
    const cell = this.press && this.isStill(event) ? cellAt(this, event) : null;
    this.lifted(event);
    if (!cell) return;
    if (this.isSecondTap(event)) return this.zoomOnce(event, cell);
    const same = cell.query === state.query && cell.key === state.key;
    change(same ? { query: null, key: null } : cell);
  }

  isSecondTap({ pointerType, timeStamp, offsetX, offsetY }) {
    if (pointerType === "mouse") return false;
    const { tapped } = this;
    const near = tapped && Math.hypot(offsetX - tapped.x, offsetY - tapped.y) <= NEAR;
    const isSecond = near && timeStamp - tapped.at <= TWICE;
    this.tapped = isSecond ? null : { x: offsetX, y: offsetY, at: timeStamp };
    return isSecond;
  }

  // To where labels can be read, or back to the whole map; what was tapped stays chosen.
  zoomOnce({ offsetX, offsetY }, cell) {
    change(cell);
    if (this.side > this.whole) this.fit();
    else this.zoom(Math.max(2.5, READABLE / this.side), offsetX - this.gutter, offsetY - this.head);
  }

  // The wheel alone scrolls the page, as everywhere.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 200), event.offsetX - this.gutter, event.offsetY - this.head);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { query: row, key: column } = this.chosen() ?? { query: 0, key: 0 };
    const { nRows, nColumns } = this.cells;
    const moves = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [row - FAR, column],
      PageDown: [row + FAR, column],
      Home: [row, 0],
      End: [row, nColumns - 1],
    };
    const zooms = { "+": FASTER, "=": FASTER, "-": 1 / FASTER };
    if (event.key in zooms) this.zoomToChosen(zooms[event.key]);
    else if (event.key === "Escape") change({ query: null, key: null });
    else if (event.key in moves) {
      const [query, key] = this.chosen() ? moves[event.key] : [row, column];
      this.over = null;
      const [most, last] = [nRows - 1, nColumns - 1];
      change({ query: Math.min(Math.max(0, query), most), key: Math.min(Math.max(0, key), last) });
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
      if (this.side > this.whole) this.move(beyond(x, this.width), beyond(y, this.height));
    }
    this.plan();
  }
}
