// The heads of an atlas, and which of them a search finds.
import { content } from "./dom.js";
import { plain, state } from "./state.js";

export const { atlas } = content;
for (const text of atlas.texts) text.at = new Map(text.positions.map((at, place) => [at, text.tokens[place]]));
for (const head of atlas.heads) head.name = `${head.layer}.${head.head}`;

// What is said of heads without a name: that they were held against nothing is something else than that none stands out.
export function unnamed(otherwise) {
  const isTested = atlas.measures.some(({ chance }) => chance !== null);
  return isTested ? otherwise : "not named: that takes --null random, which says what chance gives";
}

export const WAYS = { kinds: "by what they do", measure: "by a measure", points: "by two measures" };
if (!Object.keys(atlas.letters).length) delete WAYS.kinds;
const [acrossAtFirst, upAtFirst] = atlas.axes.map((place) => atlas.measures[place].title);
const [drawnAtFirst] = Object.keys(WAYS);
Object.assign(plain, { draw: drawnAtFirst, x: acrossAtFirst, y: upAtFirst, head: atlas.first, find: "" });

// What is chosen. Measures and heads go by their names: a link may be of another survey, and what is not there is left out.
export function chosen() {
  const known = (name) => (measureOf(state[name]) ? state[name] : plain[name]);
  const draw = state.draw in WAYS ? state.draw : plain.draw;
  return { draw, x: known("x"), y: known("y"), head: headCalled(state.head) < 0 ? atlas.first : state.head };
}

export const measureOf = (title) => atlas.measures.find((measure) => measure.title === title);
export const headCalled = (name) => atlas.heads.findIndex((head) => head.name === name);
const LEAST = 0.0005; // below which a number is next to nothing

// A share, "64 %", as a number.
const strengthOf = (said) => Number(/([\d.]+) ?%?$/.exec(said)?.[1] ?? 0);

export function short(value, digits = 3) {
  if (value === null) return "–";
  if (value !== 0 && Math.abs(value) < LEAST) return "≈ 0";
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// Heads by a name such as 18.6, by what they were found to do or are measured to do, or by a word that they look at.
export function findHeads(asked) {
  const wanted = asked.trim().toLowerCase();
  if (!wanted) return [];
  const numbers = /^l?(\d+)\s*[.h, ]\s*(\d+)$/.exec(wanted);
  if (numbers) return [[headCalled(`${Number(numbers[1])}.${Number(numbers[2])}`), ""]].filter(([place]) => place >= 0);
  const found = new Map();
  const add = (place, why) => found.has(place) || found.set(place, why);
  const names = atlas.heads.flatMap((head, place) => head.names.map(([name, strength]) => ({ place, name, strength })));
  names.sort((a, b) => strengthOf(b.strength) - strengthOf(a.strength));
  for (const { place, name, strength } of names) {
    if (name.includes(wanted)) add(place, name === wanted ? strength : `${name} ${strength}`);
  }
  const { title, unit, values } = atlas.measures.find((measure) => measure.title.includes(wanted)) ?? { values: [] };
  for (const [place, value] of [...values.entries()].sort(([, a], [, b]) => b - a)) {
    const said = unit === "share" ? `${Math.round(100 * value)} %` : short(value);
    if (value >= Math.max(...values) / 2) add(place, `${title} ${said}`);
  }
  const lifts = atlas.heads.map(({ words }) => words.find(([word]) => word === wanted)?.[1] ?? 0);
  for (const [place, lift] of [...lifts.entries()].sort(([, a], [, b]) => b - a)) {
    if (lift) add(place, `“${wanted}” ${short(lift)} ×`);
  }
  return [...found];
}
