// All heads at once: as points by two measures, or layers × heads as a grid coloured by one.
import { atlas, measureCalled, short } from "./atlas-data.js";
import { drawing, roving, watch } from "./dom.js";
import { state } from "./state.js";

const [GUTTER, FOOT, EDGE] = [60, 40, 12]; // pixels beside and below the points, and around them
const [LARGEST_SIDE, SMALLEST_SIDE] = [34, 15]; // pixels of a cell of the grid
const [LETTERED, PLAIN, REACH] = [8.5, 4.5, 22]; // pixels: of points, and how far from one a finger may be
const [DIGIT, TALL] = [3.1, 5]; // half of how wide a digit of a number is, and how high
const N_COLOURS = 6;

export const isGrid = () => state.atlas.draw === "grid";
export const scaleOfGrid = () => {
  const values = atlas.measures[measureCalled(state.atlas.y)].values.filter((value) => value !== null);
  const [low, high] = [Math.min(...values, 0), Math.max(...values)];
  return { low, high, is_logarithmic: false, is_multiple: false, is_signed: false };
};

// From the ground of the page to its first colour, whether it is light or dark.
export const shadeOfCell = (share, colour = "var(--head-0)", ground = "var(--panel)") =>
  `color-mix(in srgb, ${colour} ${(100 * share).toFixed(1)}%, ${ground})`;

// The pattern that a point is lettered with: one that repeated tokens show is rarer, and says more than the first token.
export const patternOf = ({ names }) => names.at(-1)?.[0] ?? null;
export const colourOfPattern = (pattern) => `var(--head-${Object.keys(atlas.letters).indexOf(pattern) % N_COLOURS})`;

export class HeadPlot {
  constructor(choose, point) {
    this.choose = choose;
    this.svg = drawing("svg", { class: "heads", role: "group" });
    watch(this.svg, point, choose);
    this.svg.addEventListener("click", (event) => this.chooseNear(event));
    this.svg.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(Number(event.target.dataset.place));
    });
  }

  chooseNear({ target, clientX, clientY }) {
    if (target.closest("[data-place]")) return;
    const { left, top } = this.svg.getBoundingClientRect();
    const apart = ([x, y]) => Math.hypot(x - (clientX - left), y - (clientY - top));
    const [place, where] = [...this.places].sort(([, a], [, b]) => apart(a) - apart(b))[0];
    if (apart(where) <= REACH) this.choose(place);
  }

  draw(width) {
    const focused = this.svg.contains(document.activeElement) ? document.activeElement.id : null;
    this.svg.replaceChildren();
    this.places = new Map();
    this.nClose = 0;
    if (isGrid()) this.drawGrid(width);
    else this.drawPoints(width);
    const nColumns = 1 + Math.max(...atlas.heads.map(({ head }) => head));
    roving(this.svg, ".point", () => (isGrid() ? nColumns : 1));
    if (focused) document.getElementById(focused)?.focus();
  }

  size(width, height) {
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      this.svg.setAttribute(name, value);
    }
  }

  drawPoints(width) {
    const [x, y] = [state.atlas.x, state.atlas.y].map((title) => atlas.measures[measureCalled(title)]);
    const height = Math.round(Math.min(440, Math.max(300, 0.72 * width)));
    this.size(width, height);
    this.svg.setAttribute("aria-label", `heads, by ${x.title} and ${y.title}`);
    const across = axisOf(x.values, GUTTER, width - EDGE);
    const up = axisOf(y.values, height - FOOT, EDGE);
    for (const value of across.ticks) {
      const at = across.place(value);
      const rule = ruleOf(at, EDGE, at, height - FOOT, ruleAt(value, across));
      this.svg.append(rule, textOf(at, height - FOOT + 15, short(value), "middle"));
    }
    for (const value of up.ticks) {
      const at = up.place(value);
      const rule = ruleOf(GUTTER, at, width - EDGE, at, ruleAt(value, up));
      this.svg.append(rule, textOf(GUTTER - 6, at + 4, short(value), "end"));
    }
    this.svg.append(textOf(width - EDGE, height - 6, `${x.title} (${x.unit}) →`, "end", "title"));
    const title = textOf(0, 0, `${y.title} (${y.unit}) →`, "end", "title");
    title.setAttribute("transform", `translate(11 ${EDGE}) rotate(-90)`);
    this.svg.append(title);
    this.drawHeads((place) => {
      const [left, top] = [x.values[place], y.values[place]];
      return left === null || top === null ? null : [across.place(left), up.place(top)];
    });
  }

  // Those of the rarest patterns last, so that they lie above the others.
  drawHeads(whereOf) {
    const patterns = Object.keys(atlas.letters);
    const rarity = (place) => patterns.indexOf(patternOf(atlas.heads[place]));
    const order = [...atlas.heads.keys()].sort((a, b) => rarity(a) - rarity(b) || a - b);
    const radiusOf = (place) => (patternOf(atlas.heads[place]) ? LETTERED : PLAIN);
    const drawn = new Map(order.map((place) => [place, whereOf(place)]).filter(([, where]) => where));
    for (const [place, [left, top]] of drawn) {
      const pattern = patternOf(atlas.heads[place]);
      const circle = drawing("circle", { cx: left, cy: top, r: radiusOf(place) });
      const point = this.button(place, circle);
      if (pattern) {
        circle.style.fill = colourOfPattern(pattern);
        point.append(textOf(left, top + 4, atlas.letters[pattern], "middle", "letter"));
      }
      this.places.set(place, [left, top]);
      this.svg.append(point);
    }
    this.numberHeads(radiusOf);
  }

  // The numbers of heads that have room, those of the points farthest from the middle of all first.
  numberHeads(radiusOf) {
    const points = [...this.places];
    const [width, height] = ["width", "height"].map((name) => Number(this.svg.getAttribute(name)));
    const [x, y] = [0, 1].map((axis) => points.map(([, at]) => at[axis]).sort((a, b) => a - b)[points.length >> 1]);
    const far = ([, [left, top]]) => Math.hypot((left - x) / width, (top - y) / height);
    const taken = points.map(([place, [left, top]]) => boxAround(left, top, radiusOf(place), radiusOf(place)));
    for (const [place, [left, top]] of points.sort((a, b) => far(b) - far(a))) {
      const { name } = atlas.heads[place];
      const [half, apart] = [DIGIT * name.length, radiusOf(place) + 2];
      const sides = [
        [apart + half, 0],
        [-apart - half, 0],
        [0, -apart - TALL],
        [0, apart + TALL],
      ].map(([across, up]) => [left + across, top + up]);
      const inside = ([at, up]) => at - half > GUTTER && at + half < width && up > TALL && up < height - FOOT - TALL;
      const isFree = (side) => !taken.some((box) => overlap(box, boxAround(...side, half, TALL)));
      const free = sides.find((side) => inside(side) && isFree(side));
      if (!free) continue;
      taken.push(boxAround(...free, half, TALL));
      const number = textOf(free[0], free[1] + 4, name, "middle", "called");
      number.dataset.of = place;
      this.svg.append(number);
    }
    this.nClose = 2 * points.length - taken.length; // heads without a number
  }

  drawGrid(width) {
    const measure = atlas.measures[measureCalled(state.atlas.y)];
    const [layers, heads] = ["layer", "head"].map((name) => [...new Set(atlas.heads.map((each) => each[name]))]);
    const side = Math.max(SMALLEST_SIDE, Math.min(LARGEST_SIDE, (width - GUTTER - EDGE) / heads.length));
    this.size(Math.round(GUTTER + side * heads.length + EDGE), Math.round(FOOT + side * layers.length + EDGE));
    this.svg.setAttribute("aria-label", `layers × heads, coloured by ${measure.title}`);
    const scale = scaleOfGrid();
    const every = Math.ceil(16 / side);
    for (const [row, layer] of layers.entries()) {
      const y = FOOT + (row + 0.5) * side + 4;
      if (row % every === 0) this.svg.append(textOf(GUTTER - 6, y, layer, "end"));
    }
    for (const [column, head] of heads.entries()) {
      if (column % every === 0) this.svg.append(textOf(GUTTER + (column + 0.5) * side, FOOT - 6, head, "middle"));
    }
    this.svg.append(textOf(GUTTER, 14, "head →", "start", "title"), textOf(2, FOOT - 6, "layer ↓", "start", "title"));
    for (const [place, each] of atlas.heads.entries()) {
      const [x, y] = [GUTTER + heads.indexOf(each.head) * side, FOOT + layers.indexOf(each.layer) * side];
      const cell = drawing("rect", { x, y, width: side - 1, height: side - 1 });
      const value = measure.values[place];
      if (value !== null) cell.style.fill = shadeOfCell((value - scale.low) / (scale.high - scale.low || 1));
      const point = this.button(place, cell);
      const pattern = patternOf(each);
      if (pattern)
        point.append(textOf(x + side / 2, y + side / 2 + 4, atlas.letters[pattern], "middle", "letter inside"));
      this.places.set(place, [x + side / 2, y + side / 2]);
      this.svg.append(point);
    }
  }

  button(place, shape) {
    const { name, names } = atlas.heads[place];
    const label = [`head ${name}`, ...names.map((each) => each.join(" "))].join(", ");
    const attributes = {
      class: "point",
      role: "button",
      id: `point-${place}`,
      "data-place": place,
      "aria-label": label,
    };
    return drawing("g", attributes, shape);
  }

  // Which heads are chosen, and which a search has found: the others turn pale.
  mark(found) {
    const chosen = new Set(state.atlas.heads);
    for (const point of this.svg.querySelectorAll(".point")) {
      const place = Number(point.dataset.place);
      point.setAttribute("aria-pressed", chosen.has(atlas.heads[place].name));
      point.classList.toggle("pale", found !== null && !found.has(place));
    }
    for (const number of this.svg.querySelectorAll(".called")) {
      number.classList.toggle("pale", found !== null && !found.has(Number(number.dataset.of)));
    }
  }
}

// From numbers to pixels, a little beyond the smallest and the largest, with ticks at round numbers.
export function axisOf(values, from, to) {
  const known = values.filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = 0.05 * (most - least || 1);
  const [low, high] = [least - room, most + room];
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const ticks = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) ticks.push(Number((n * step).toPrecision(12)));
  return { ticks, isSigned: least < 0, place: (value) => from + ((value - low) / (high - low)) * (to - from) };
}

// Numbers that go either way are held against 0.
const ruleAt = (value, { isSigned }) => (isSigned && value === 0 ? "rule zero" : "rule");
const boxAround = (x, y, half, tall) => [x - half, y - tall, x + half, y + tall];
const overlap = (one, other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
export const ruleOf = (x1, y1, x2, y2, name = "rule") => drawing("line", { class: name, x1, y1, x2, y2 });
export const textOf = (x, y, text, anchor, name = "tick") =>
  drawing("text", { class: name, x, y, "text-anchor": anchor }, String(text));
