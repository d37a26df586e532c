// Samples side by side, every number a dot: none is estimated, and what lies together stands side by side.
import { about3, ChartAxes, cutTo, drawable, exactly, lost, ring, widthOf } from "./charts_axes.js";
import { besideEachOther, DOT, dots, PITCH_OF_DOTS } from "./charts_dots.js";
import { drawing, isolated } from "./dom.js";
import { strong } from "./readout.js";

const FEWEST = 30; // numbers whose middle half is shown; of fewer, a line at the median
const APART = 0.8; // between two groups, beyond what is between two samples
const EDGE = 0.6; // from either end of an axis to the nearest sample
const [LEAST_SLOT, MOST_SLOT] = [8, 58]; // pixels from sample to sample
const BROAD = 0.8; // of a slot, that dots may fill
const NEARBY = 12; // pixels from a dot within which it is meant, and not its sample
const MOST_LABEL = 96; // pixels of a label on its side

export class SamplesChart {
  static sample(place) {
    return [dots(place, "M7 7h.01M17 7h.01M27 7h.01", 7)];
  }

  constructor(chart, { names }) {
    this.data = chart;
    this.names = names;
    let gaps = 0;
    this.samples = chart.samples.map((sample, place) => {
      if (place && chart.samples[place - 1].group !== sample.group) gaps += APART;
      const values = sample.values.map(Number);
      const order = values.map((_, number) => number).filter((number) => drawable(values[number]));
      order.sort((a, b) => values[a] - values[b] || a - b);
      const rest = values.map((_, number) => number).filter((number) => !drawable(values[number]));
      return { ...sample, values, order: [...order, ...rest], nDrawn: order.length, slot: place + gaps };
    });
  }

  draw(width) {
    const last = this.samples.at(-1)?.slot ?? 0;
    const units = last + 2 * EDGE;
    const fits = (whole) => new ChartAxes(this.data, whole);
    const tooNarrow = LEAST_SLOT * units - fits(width).width;
    this.slot = Math.min(MOST_SLOT, (fits(width).width + Math.max(0, tooNarrow)) / units);
    const below = this.planLabels();
    this.axes = new ChartAxes(this.data, width + Math.max(0, tooNarrow), below);
    this.middle = last / 2;
    this.places = this.samples.map((sample) => this.placed(sample));
    const samples = this.samples.flatMap((sample, group) => this.drawnSample(sample, this.places[group]));
    const none = this.samples.some(({ nDrawn }) => nDrawn) ? [] : [this.axes.nothing("no numbers")];
    return { drawn: [...this.axes.drawn(), ...samples, ...this.drawnLabels(), ...none], size: this.axes.size };
  }

  x({ slot }) {
    return this.axes.left + this.axes.width / 2 + (slot - this.middle) * this.slot;
  }

  // Each dot as near to the middle as those under it leave, like the points of the pictures; not shuffled.
  placed(sample) {
    const heights = sample.order.slice(0, sample.nDrawn).map((number) => this.axes.y(sample.values[number]));
    const columns = besideEachOther(heights);
    const most = columns.reduce((widest, column) => Math.max(widest, Math.abs(column)), 1);
    const step = Math.min(PITCH_OF_DOTS, (BROAD * this.slot) / 2 / most);
    return heights.map((height, rank) => [this.x(sample) + columns[rank] * step, height]);
  }

  drawnSample(sample, places) {
    const x = this.x(sample);
    if (!places.length)
      return this.slot < 14 ? [] : [this.onItsSide("no numbers", x, this.axes.top + this.axes.height - 6, "start")];
    const path = places.map(([at, height]) => `M${at.toFixed(1)} ${height.toFixed(1)}h.01`).join("");
    const drawn = [dots(sample.group, path, DOT)];
    const [low, median, high] = sample.quartiles.map((value) => this.axes.y(value));
    if (places.length >= FEWEST) {
      drawn.push(drawing("path", { class: "half", d: `M${x} ${low}V${high}` }));
      drawn.push(drawing("circle", { class: "median", cx: x, cy: median, r: 2.6 }));
    } else if (places.length > 1) {
      const half = (BROAD * this.slot * 0.75) / 2;
      drawn.unshift(drawing("path", { class: "level", d: `M${x - half} ${median}h${2 * half}` })); // dots lie over it
    }
    return drawn;
  }

  // Labels stand upright where there is room, else on their side; some are left out where even that is too close.
  planLabels() {
    const widest = Math.max(0, ...this.samples.map(({ label }) => widthOf(label.slice(0, 200))));
    const isShort = widest <= 36;
    this.upright = widest + 4 <= this.slot || isShort;
    this.every = Math.max(1, Math.ceil((this.upright ? widest + 4 : 14) / this.slot));
    return this.upright ? 20 : Math.min(widest, MOST_LABEL) + 12;
  }

  drawnLabels() {
    const bottom = this.axes.top + this.axes.height;
    const shown = this.samples.filter((_, place) => place % this.every === 0);
    return shown.map((sample) => {
      const x = this.x(sample);
      if (this.upright) return this.axes.text(sample.label, x, bottom + 16, "middle");
      return this.onItsSide(cutTo(sample.label, MOST_LABEL), x, bottom + 8, "end");
    });
  }

  onItsSide(text, x, y, anchor) {
    return this.axes.text(text, x + 4, y, anchor, { transform: `rotate(-90 ${x + 4} ${y})` });
  }

  first() {
    return this.samples.length ? [0, null] : null;
  }

  // The dot that is pointed at, or else the sample that it would be of.
  nearest(x, y) {
    if (!this.samples.length) return null;
    const aside = this.samples.map((sample) => Math.abs(this.x(sample) - x));
    const group = aside.indexOf(Math.min(...aside));
    let [found, least] = [null, NEARBY];
    for (const [rank, place] of this.places[group].entries()) {
      const away = Math.hypot(place[0] - x, place[1] - y);
      if (away < least) [found, least] = [rank, away];
    }
    return [group, found];
  }

  // From sample to sample to the left and the right, through the numbers of one up and down, from its median on.
  moved(key, group, rank) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const clamped = (at, length) => Math.min(Math.max(0, at), length - 1);
    if (step) return [clamped(group + step, this.samples.length), null];
    const { length } = this.samples[group].order;
    const { nDrawn } = this.samples[group];
    const from = rank ?? Math.floor((nDrawn - 1) / 2);
    const to = { ArrowUp: rank === null ? from : rank + 1, ArrowDown: rank === null ? from : rank - 1 };
    const ends = { Home: 0, End: length - 1 };
    const next = to[key] ?? ends[key];
    return next === undefined || !length ? null : [group, clamped(next, length)];
  }

  marks(group, rank) {
    const { top, height } = this.axes;
    const sample = this.samples[group];
    const band = { class: "band", x: this.x(sample) - this.slot / 2, y: top, width: this.slot, height };
    const place = this.places[group][rank];
    return [drawing("rect", band), ...(place ? [ring(...place)] : [])];
  }

  said(group, rank) {
    const sample = this.samples[group];
    const name = strong("");
    name.append(...this.named(sample));
    const parts = [isolated(this.data.y_axis), ", ", name, ": "];
    if (rank !== null) {
      const number = sample.order[rank];
      const of = `number ${number} (of 0 to ${sample.values.length - 1}): `;
      return [...parts, of, strong(exactly(sample.values[number]))];
    }
    const n = sample.values.length;
    parts.push(`${n} ${n === 1 ? "number" : "numbers"}`);
    if (!sample.quartiles) return parts;
    const [low, median, high] = sample.quartiles.map(exactly);
    const ends = this.ends(sample).map(exactly);
    parts.push(`, ${ends.join(" to ")}, the middle half ${low} to ${high}, median: `, strong(median));
    return parts;
  }

  named({ group, label }) {
    const axis = this.data.x_axis ? `${this.data.x_axis} ` : "";
    const own = this.names[group] ? [isolated(this.names[group]), ", "] : [];
    return [...own, isolated(axis), isolated(label)];
  }

  ends({ order, nDrawn, values }) {
    return [values[order[0]], values[order[nDrawn - 1]]];
  }

  words() {
    const { title, x_axis, y_axis } = this.data;
    const samples = this.samples.map((sample) => {
      const median = sample.quartiles ? `median ${about3(sample.quartiles[1])}` : "no numbers";
      return `${[this.names[sample.group], sample.label].filter(Boolean).join(" ")}: ${median}`;
    });
    const shown = samples.length > 40 ? [...samples.slice(0, 40), "and more"] : samples;
    const keys = "Arrow keys move from sample to sample, and up and down through the numbers of one.";
    return `${title}: ${y_axis} by ${x_axis}. ${shown.join("; ")}. ${keys}`;
  }

  hints() {
    const sizes = this.samples.map(({ nDrawn }) => nDrawn);
    const many = sizes.some((n) => n >= FEWEST);
    const few = sizes.some((n) => n > 1 && n < FEWEST);
    return [
      "Each dot is one number; dots beside each other are about the same.",
      ...(many ? ["The bar spans the middle half of a sample, and the dot on it is the median."] : []),
      ...(few ? [`Of fewer than ${FEWEST} numbers, the line is the median.`] : []),
    ];
  }

  lost() {
    return lost(
      this.samples.reduce((sum, { values, nDrawn }) => sum + values.length - nDrawn, 0),
      "number",
    );
  }

  // A line for each sample to be read, a line for each number to be copied.
  table() {
    const rows = this.samples.map((sample) => {
      const [low, median, high] = sample.quartiles ?? [null, null, null];
      const [least, most] = sample.quartiles ? this.ends(sample) : [null, null];
      return [this.names[sample.group], sample.label, sample.values.length, least, low, median, high, most];
    });
    const columns = [
      "of",
      this.data.x_axis,
      "numbers",
      "smallest",
      "lower quartile",
      "median",
      "upper quartile",
      "largest",
    ];
    const all = this.samples.flatMap(({ group, label, values }) =>
      values.map((value, number) => [this.names[group], label, number, value]),
    );
    return { columns, rows, all, allColumns: ["of", this.data.x_axis, "number", this.data.y_axis] };
  }
}
