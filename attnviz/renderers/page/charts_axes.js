// A pair of axes on paper: where a number lies, the lines and numbers along it. Ranges and ticks come with the report.
import { drawing } from "./dom.js";

const [ABOVE, BELOW, BESIDE] = [20, 20, 12]; // pixels around the axes: for a mark's name, for numbers, for half of one
const N_COLOURS = 7;
const LARGEST = 1e100; // beyond it the arithmetic of an axis overflows
const ELLIPSIS = "…";

let measuring = null;

// Pixels of a text at the size of numbers along an axis.
export function widthOf(text) {
  measuring ??= Object.assign(new OffscreenCanvas(1, 1).getContext("2d"), { font: "12px system-ui, sans-serif" });
  return measuring.measureText(text).width;
}

// As much of a text as there is room for; of its first signs, since more are never drawn.
export function cutTo(text, room) {
  if (text.length < 200 && widthOf(text) <= room) return text;
  const signs = [...text.slice(0, 200)];
  while (signs.length && widthOf(signs.join("") + ELLIPSIS) > room) signs.pop();
  return signs.join("") + ELLIPSIS;
}

export const drawable = (number) => Math.abs(number) <= LARGEST; // so that NaN is not
export const toneOf = (place) => `head-${place % N_COLOURS}`;

// A number as it is stored, or in words.
export function exactly(number) {
  if (Number.isNaN(number)) return "not a number";
  return Number.isFinite(number) ? String(number) : number > 0 ? "infinity" : "minus infinity";
}

// About what a number is, for those who cannot see where it lies.
export const about3 = (number) => (Number.isFinite(number) ? String(Number(number.toPrecision(3))) : exactly(number));

export function lost(n, thing) {
  return n ? `${n} ${thing}${n === 1 ? "" : "s"} cannot be drawn: not a number, or too large` : "";
}

export class ChartAxes {
  constructor({ y }, width, below = BELOW) {
    const widest = Math.max(0, ...y.ticks.map(([, text]) => widthOf(text)));
    Object.assign(this, { yRange: y, left: Math.ceil(widest) + 10, top: ABOVE, below });
    this.width = width - this.left - BESIDE;
    this.height = Math.round(Math.min(260, Math.max(170, 0.6 * this.width)));
    this.size = [width, this.top + this.height + this.below];
  }

  y(value) {
    const { low, high } = this.yRange;
    return this.top + (1 - (value - low) / (high - low)) * this.height;
  }

  x(value, { low, high }) {
    return this.left + ((value - low) / (high - low)) * this.width;
  }

  // The frame is open to the top and the right, with the numbers of its y axis.
  drawn() {
    const [right, bottom] = [this.left + this.width, this.top + this.height];
    const level = (tick) => drawing("path", { class: "grid", d: `M${this.left} ${this.y(tick)}H${right}` });
    const number = ([tick, text]) => this.text(text, this.left - 6, this.y(tick) + 4, "end");
    const { ticks } = this.yRange;
    const corner = drawing("path", { class: "frame", d: `M${this.left} ${this.top}V${bottom}H${right}` });
    return [...ticks.map(([tick]) => level(tick)), corner, ...ticks.map(number)];
  }

  // Numbers along the x axis, as many as there is room for.
  numbered(range) {
    const bottom = this.top + this.height;
    const step =
      range.ticks.length > 1 ? this.x(range.ticks[1][0], range) - this.x(range.ticks[0][0], range) : Infinity;
    const widest = Math.max(0, ...range.ticks.map(([, text]) => widthOf(text)));
    const every = Math.max(1, Math.ceil((widest + 8) / step));
    const ticks = range.ticks.filter((_, place) => place % every === 0);
    return ticks.flatMap(([tick, text]) => [
      drawing("path", { class: "grid", d: `M${this.x(tick, range)} ${this.top}V${bottom}` }),
      this.text(text, this.x(tick, range), bottom + 16, "middle"),
    ]);
  }

  text(text, x, y, anchor, more = {}) {
    return drawing("text", { x, y, "text-anchor": anchor, ...more }, text);
  }

  nothing(text) {
    return this.text(text, this.left + this.width / 2, this.top + this.height / 2, "middle", { class: "quiet" });
  }
}

// Around what is pointed at; seen on whatever it lies.
export function ring(x, y) {
  const circle = (name) => drawing("circle", { class: name, cx: x, cy: y, r: 6 });
  return drawing("g", {}, circle("halo"), circle("ring"));
}
