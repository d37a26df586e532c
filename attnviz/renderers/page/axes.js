// The one drawer of charts: a pair of axes with a table on it, as an SVG in pixels of the page, so that letters stay
// legible on any screen. A row has "x" and "y", and may have what `Chart` in report.py says, but for an interval and what
// asks for one look of several charts: no page has charts with these.
import { drawing, dress, element, write } from "./dom.js";

const LETTERS = 12; // pixels: their size
const [HIGHEST, LOWEST, FLAT] = [420, 200, 0.6]; // pixels, and how high axes are of how wide they are
const [HEAD, EDGE, SLOT] = [18, 12, 15]; // pixels above and to the right of what is drawn, and from name to name at least
const MARGIN = 0.05; // of what is shown, on either side
const N_TICKS = 5; // or about so many
const DEEPEST = 1e3; // times below the largest, from which on a logarithm has no room for a number
const MOST = 1e100; // beyond, the arithmetic of an axis overflows
const FEW = 12; // points of a line that are marked
const FEWEST = 30; // numbers that make a box: quartiles of fewer would show what nobody knows
const RADII = { lettered: 8.5, plain: 4, ofLine: 2.5 };
export const N_COLOURS = 6;
const DASHES = ["none", "5 3", "1 3"];

const isKnown = (value) => typeof value === "number" && Math.abs(value) <= MOST;
export const isDrawn = ({ x, y }) => isKnown(x) && isKnown(y);
const groupOf = ({ group = "" }) => group;

// How rows of each name look: a colour, and dashes once all colours are taken; grey what others are held against.
export function looksOf(charts) {
  const all = charts.flatMap(({ groups = [], rows }) => [...groups, ...rows.map(groupOf)]);
  const names = [...new Set(all)];
  const isQuiet = (name) => names.length > 1 && name === "";
  const looks = new Map(names.filter(isQuiet).map((name) => [name, { colour: "var(--quiet)", dashes: DASHES[1] }]));
  for (const [place, name] of names.filter((each) => !isQuiet(each)).entries()) {
    const dashes = DASHES[Math.floor(place / N_COLOURS) % DASHES.length];
    looks.set(name, { colour: `var(--head-${place % N_COLOURS})`, dashes });
  }
  return looks;
}

// The names of groups, each with a sample of it.
export function keyOf(looks) {
  const items = [...looks]
    .filter(([name]) => name)
    .map(([name, { colour, dashes }]) => {
      const line = `3px ${dashes === DASHES[0] ? "solid" : "dashed"} ${colour}`;
      return element("li", {}, element("i", { style: { "border-top": line } }), name);
    });
  return items.length ? element("ul", { class: "tools groups" }, ...items) : "";
}

// The names of axes around what is drawn on them, which break into lines as they like.
export const axesAround = ({ x_axis, y_axis }, inner) => [
  element("p", { class: "axis" }, `↑ ${y_axis}`),
  inner,
  element("p", { class: "axis across" }, `${x_axis} →`),
];

// `scales` says how x and y grow, "log" or evenly. Labels that find no room beside their points are left out.
export function drawChart(chart, room, looks = looksOf([chart])) {
  const { kind, rows, names = [], at, scales = {} } = chart;
  const known = rows.filter(isDrawn);
  const heights = known.map(({ y }) => y);
  const up = axisOf(heights, scales.y);
  const left = Math.max(24, ...up.ticks.map(([, text]) => widthOf(text) + 8));
  const [width, height] = [room, Math.min(HIGHEST, Math.max(LOWEST, FLAT * room))];
  const svg = drawing("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}` });
  if (!known.length) {
    svg.append(textOf(width / 2, height / 2, write("ui.no_numbers"), "middle"));
    return svg;
  }
  const inner = width - left - EDGE;
  const slot = inner / (names.length + 0.2);
  const isFlat = names.every((name) => widthOf(name) < slot - 4);
  const every = Math.ceil((isFlat ? 1 : SLOT) / slot);
  const across = names.length
    ? { place: (x) => (x + 0.6) / (names.length + 0.2), ticks: [...names.entries()].filter(([at]) => at % every === 0) }
    : axisOf([...known.map(({ x }) => x), ...(at ? [at[0]] : [])], scales.x);
  const foot = height - (isFlat ? 20 : Math.min(height / 2, Math.max(...names.map(widthOf)) + 10));
  const x = (value) => left + across.place(value) * inner;
  const y = (value) => foot - up.place(value) * (foot - HEAD);

  const ruleAt = (axis, value) => (axis.isSigned && value === 0 ? "rule zero" : "rule");
  for (const [value, text] of up.ticks) {
    svg.append(ruleOf(left, y(value), width, y(value), ruleAt(up, value)), textOf(left - 6, y(value) + 4, text, "end"));
  }
  for (const [value, text] of across.ticks) {
    if (!names.length) svg.append(ruleOf(x(value), HEAD, x(value), foot, ruleAt(across, value)));
    const label = textOf(x(value), foot + (isFlat ? 15 : 8), text, isFlat ? "middle" : "end");
    svg.append(isFlat ? label : dress(label, { transform: `rotate(-90 ${x(value)} ${foot + 4})` }));
  }
  if (at) {
    const side = x(at[0]) > width / 2 ? "end" : "start";
    svg.append(ruleOf(x(at[0]), HEAD, x(at[0]), foot, "at"), textOf(x(at[0]), 12, at[1], side));
  }
  const radiusOf = ({ letter }) => (kind === "line" ? RADII.ofLine : letter ? RADII.lettered : RADII.plain);
  for (const row of MARKS[kind]({ svg, rows, known, x, y, looks, slot })) {
    const spot = { cx: x(row.x), cy: y(row.y), r: radiusOf(row), fill: looks.get(groupOf(row)).colour };
    const letter = row.letter ? [textOf(spot.cx, spot.cy + 4, row.letter, "middle", "letter")] : [];
    svg.append(drawing("g", { class: "point", "data-place": row.place ?? "" }, drawing("circle", spot), ...letter));
  }
  const spots = known.map((row) => ({ row, at: [x(row.x), y(row.y)], radius: radiusOf(row) }));
  for (const { row, x, y } of placeLabels(spots, [left, width])) {
    svg.append(dress(textOf(x, y + 4, row.label, "middle", "called"), { "data-place": row.place ?? "" }));
  }
  return svg;
}

// What each kind of chart draws of its rows; gives those that are dots.
const MARKS = {
  point: ({ known }) => known,

  line({ svg, rows, x, y, looks }) {
    const dots = [];
    for (const [name, of] of Map.groupBy(rows, groupOf)) {
      const { colour, dashes } = looks.get(name);
      const isAt = of.map(isDrawn);
      const steps = of.map((row, place) =>
        isAt[place] ? `${isAt[place - 1] ? "L" : "M"}${x(row.x)} ${y(row.y)}` : "",
      );
      const look = { fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dashes };
      svg.append(drawing("path", { class: "line", d: steps.join(""), ...look }));
      const isMarked = (_, place) => isAt[place] && (of.length <= FEW || !(isAt[place - 1] || isAt[place + 1]));
      dots.push(...of.filter(isMarked));
    }
    return dots;
  },

  // Many numbers as a box of their middle half with a line to the ends, few as points; and their median.
  box({ svg, known, x, y, looks, slot }) {
    const half = Math.min(14, 0.35 * slot);
    const few = [];
    for (const of of Map.groupBy(known, (row) => row.x).values()) {
      const [low, first, median, third, high] = quartilesOf(of.map((row) => row.y)).map(y);
      const [middle, { colour }] = [x(of[0].x), looks.get(groupOf(of[0]))];
      if (of.length >= FEWEST) {
        const box = { class: "box", x: middle - half, width: 2 * half, y: third, height: first - third };
        svg.append(dress(ruleOf(middle, low, middle, high, "interval"), { stroke: colour, opacity: 0.6 }));
        svg.append(drawing("rect", { ...box, fill: colour, "fill-opacity": 0.35, stroke: colour }));
      } else few.push(...of);
      const line = ruleOf(middle - half, median, middle + half, median, "median");
      svg.append(dress(line, { stroke: "var(--ink)", "stroke-width": 2 }));
    }
    return few;
  },
};

// Numbers as numpy's percentiles: the least, the quartiles, the largest.
export function quartilesOf(values) {
  const sorted = values.filter(isKnown).sort((a, b) => a - b);
  return [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const [below, above] = [Math.floor, Math.ceil].map((round) => sorted[round(share * (sorted.length - 1))]);
    return below + (above - below) * ((share * (sorted.length - 1)) % 1);
  });
}

// The labels that have room to the right or to the left of their points.
function placeLabels(spots, [left, right]) {
  const taken = spots.map(({ at, radius }) => boxAround(at, radius, radius));
  const placed = [];
  for (const { row, at, radius } of spots.filter(({ row }) => row.label)) {
    const half = widthOf(row.label) / 2;
    const boxes = [half + radius + 3, -half - radius - 3].map((apart) =>
      boxAround([at[0] + apart, at[1]], half, LETTERS / 2),
    );
    const isFree = (box) => box[0] >= left && box[2] <= right && !taken.some((other) => overlap(box, other));
    const box = boxes.find(isFree);
    if (!box) continue;
    taken.push(box);
    placed.push({ row, x: box[0] + half, y: at[1] });
  }
  return placed;
}

// From numbers to shares of an axis, a little beyond the smallest and the largest, with round numbers and their texts.
function axisOf(numbers, scale = "linear") {
  const smallest = (some) => some.reduce((a, b) => Math.min(a, b), Infinity); // there may be very many
  const [least, most] = [smallest(numbers), -smallest(numbers.map((value) => -value))];
  const above0 = smallest(numbers.filter((value) => value > 0));
  const isLog = scale === "log";
  const lowest = isLog ? Math.max(above0, most / DEEPEST) : least;
  const turn = (value) => (isLog ? Math.log10(Math.max(value, lowest)) : value);
  const [low, high] = [turn(lowest), turn(most)];
  const room = MARGIN * (high - low || Math.max(1, Math.abs(high)));
  const place = (value) => (turn(value) - low + room) / (high - low + 2 * room);
  const ticks = isLog ? powersOfTen(lowest, most) : roundNumbers(low - room, high + room);
  const apart = ticks.filter(([value]) => value > 2 * lowest);
  return {
    place,
    ticks: least < lowest ? [[lowest, `≤ ${written(lowest, 1)}`], ...apart] : ticks,
    isSigned: least < 0,
  };
}

function roundNumbers(low, high) {
  const rough = (high - low) / N_TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const digits = 1 + Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / step));
  const first = Math.ceil(low / step);
  const values = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, n) => (first + n) * step);
  return values.map((value) => [value, written(value, digits)]);
}

function powersOfTen(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const every = 1 + Math.floor((last - first) / (2 * N_TICKS));
  const ticks = [];
  for (let power = first; power <= last; power += every) ticks.push([10 ** power, written(10 ** power, 4)]);
  return ticks;
}

function written(value, digits) {
  const isPlain = value === 0 || (Math.abs(value) < 1e6 && Math.abs(value) >= 1e-4);
  const rounded = Number(value.toPrecision(digits));
  const text = isPlain ? String(rounded) : rounded.toExponential();
  return text.replace(/-/g, "−");
}

const pen = new OffscreenCanvas(1, 1).getContext("2d");
function widthOf(text) {
  pen.font = `${LETTERS}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

const boxAround = ([x, y], half, tall) => [x - half, y - tall, x + half, y + tall];
const overlap = (one, other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
const ruleOf = (x1, y1, x2, y2, name = "rule") => drawing("line", { class: name, x1, y1, x2, y2 });
export const textOf = (x, y, text, anchor, name = "tick") =>
  drawing("text", { class: name, x, y, "text-anchor": anchor }, text);
