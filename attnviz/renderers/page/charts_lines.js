// Lines over one pair of axes: a gap where a number cannot be drawn, a sign on each point that counts.
import { about3, ChartAxes, cutTo, drawable, exactly, lost, ring, toneOf, widthOf } from "./charts_axes.js";
import { drawing, isolated } from "./dom.js";
import { strong } from "./readout.js";

// Lines of different names differ without their colours, too: in their dashes, and marked ones in their signs.
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "14 4", "9 3 2 3 2 3"];
const SIGNS = [
  (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z`,
  (x, y) => `M${x - 3.6} ${y - 3.6}h7.2v7.2h-7.2z`,
  (x, y) => `M${x} ${y - 4.6}l4.6 8h-9.2z`,
  (x, y) => `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
  (x, y) => `M${x} ${y + 4.6}l4.6 -8h-9.2z`,
];

export class LinesChart {
  static sample(place) {
    return [stroke(place, "M1 7H33")];
  }

  constructor(chart, { names }) {
    this.data = chart;
    this.names = names;
    this.lines = chart.lines.map((line) => ({ ...line, x: line.x.map(Number), y: line.y.map(Number) }));
  }

  draw(width) {
    this.axes = new ChartAxes(this.data, width);
    const at = (line) => (_, place) => this.placed(line.x[place], line.y[place]);
    this.places = this.lines.map((line) => line.x.map(at(line)));
    const order = this.lines.map((_, number) => number).sort((a, b) => this.lines[a].marked - this.lines[b].marked);
    const lines = order.flatMap((number) => this.drawnLine(this.lines[number], this.places[number]));
    const axes = [...this.axes.numbered(this.data.x), ...this.axes.drawn()];
    const none = this.places.flat().some((place) => place) ? [] : [this.axes.nothing("no points")];
    return { drawn: [...axes, ...this.drawnAt(), ...lines, ...none], size: this.axes.size };
  }

  placed(x, y) {
    return drawable(x) && drawable(y) ? [this.axes.x(x, this.data.x), this.axes.y(y)] : null;
  }

  drawnLine({ name, marked }, places) {
    let path = "";
    for (const [number, place] of places.entries()) {
      if (place) path += `${places[number - 1] ? "L" : "M"}${place.map(short).join(" ")}`;
    }
    const shown = [stroke(name, path)];
    const signed = marked ? places.filter((place) => place) : places.filter((_, number) => isAlone(places, number));
    const sign = marked ? SIGNS[name % SIGNS.length] : dot;
    const signs = signed.map((place) => sign(...place.map(short))).join("");
    if (signs) shown.push(drawing("path", { class: `sign ${toneOf(name)}`, d: signs }));
    return shown;
  }

  // The vertical line, and its name above the axes.
  drawnAt() {
    const { at, at_label, x } = this.data;
    if (!this.isMarkedAt()) return [];
    const { left, top, width, height } = this.axes;
    const label = cutTo(at_label, width);
    const half = widthOf(label) / 2;
    const place = this.axes.x(at, x);
    const middle = Math.min(Math.max(place, left + half), left + width - half);
    return [
      drawing("path", { class: "at", d: `M${place} ${top - 2}V${top + height}` }),
      this.axes.text(label, middle, top - 7, "middle", { class: "quiet" }),
    ];
  }

  isMarkedAt() {
    const { at, x } = this.data;
    return at !== null && x.ticks.length > 0 && x.low <= at && at <= x.high;
  }

  first() {
    const group = this.lines.findIndex((line) => line.x.length);
    return group < 0 ? null : [group, 0];
  }

  nearest(x, y) {
    let [found, least] = [null, Infinity];
    for (const [group, places] of this.places.entries()) {
      for (const [number, place] of places.entries()) {
        const away = place ? Math.hypot(place[0] - x, place[1] - y) : Infinity;
        if (away < least) [found, least] = [[group, number], away];
      }
    }
    return found;
  }

  // Along a line to the left and the right, from line to line up and down.
  moved(key, group, number) {
    const { length } = this.lines[group].x;
    const along = { ArrowRight: number + 1, ArrowLeft: number - 1, Home: 0, End: length - 1 }[key];
    if (along !== undefined) return [group, Math.min(Math.max(0, along), length - 1)];
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (!step) return null;
    let other = group + step;
    while (this.lines[other] && !this.lines[other].x.length) other += step;
    return this.lines[other] ? [other, this.alike(other, this.lines[group].x[number])] : [group, number];
  }

  // The point of a line whose x is nearest.
  alike(group, x) {
    const away = this.lines[group].x.map((each) => (each === x ? 0 : Math.abs(each - x)));
    return away.reduce((best, each, place) => (each < away[best] ? place : best), 0);
  }

  marks(group, number) {
    const place = this.places[group]?.[number];
    return place ? [ring(...place)] : [];
  }

  said(group, number) {
    const { title, x_axis, y_axis } = this.data;
    const { name, x, y } = this.lines[group];
    const line = strong("");
    line.append(isolated(this.names[name]));
    const [first, second] = [x[number], y[number]].map((each) => strong(exactly(each)));
    return [isolated(title), ", ", line, ": ", isolated(x_axis), " ", first, ", ", isolated(y_axis), ": ", second];
  }

  words() {
    const { title, x_axis, y_axis, at, at_label } = this.data;
    const lines = this.lines.map(({ name, x, y }) => {
      const seen = y.filter(drawable);
      const range = seen.length ? `, from ${about3(seen[0])} to ${about3(seen[seen.length - 1])}` : "";
      return `${this.names[name]}, ${x.length} ${x.length === 1 ? "point" : "points"}${range}`;
    });
    const mark = this.isMarkedAt() ? `. ${at_label} at ${exactly(at)}` : "";
    return `${title}: ${y_axis} by ${x_axis}. ${lines.join("; ")}${mark}. Arrow keys move from point to point.`;
  }

  hints() {
    return [];
  }

  lost() {
    const isLost = ({ x, y }) => x.filter((each, place) => !drawable(each) || !drawable(y[place]));
    return lost(this.lines.flatMap(isLost).length, "point");
  }

  table() {
    const { x_axis, y_axis } = this.data;
    const rows = this.lines.flatMap(({ name, x, y }) => x.map((each, place) => [this.names[name], each, y[place]]));
    return { columns: ["line", x_axis, y_axis], rows, all: rows };
  }
}

const short = (pixels) => Number(pixels.toFixed(2));
const dot = (x, y) => `M${x - 1.6} ${y}a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0 -3.2 0z`;

function stroke(name, d) {
  const dashes = DASHES[name % DASHES.length];
  return drawing("path", { class: `curve ${toneOf(name)}`, d, ...(dashes && { "stroke-dasharray": dashes }) });
}

// A point to which no line leads, as beside a gap or beside the same point once more.
function isAlone(places, number) {
  const here = places[number];
  const joins = (other) => other && (other[0] !== here[0] || other[1] !== here[1]);
  return here && !joins(places[number - 1]) && !joins(places[number + 1]);
}
