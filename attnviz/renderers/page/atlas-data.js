// The heads of an atlas, unpacked when they are first shown, and which of them a search finds.
import { strengthOf } from "./chips.js";
import { takeParts } from "./content.js";

export const atlas = {};
let unpacking = null;

export function openAtlas() {
  unpacking ??= unpackAtlas();
  return unpacking;
}

async function unpackAtlas() {
  const [bytes] = await takeParts("atlas-0");
  const end = bytes.indexOf(10);
  Object.assign(atlas, JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))));
  atlas.texts = atlas.texts.map(([title, options, runs, pieces]) => {
    const positions = spread(runs);
    return { title, options, tokens: new Map(positions.map((at, place) => [at, atlas.pieces[pieces[place]]])) };
  });
  let at = end + 1;
  for (const head of atlas.heads) {
    head.name = `${head.layer}.${head.head}`;
    head.moments = head.moments.map(([kind, text, query, runs, nKeys, first, effective]) => {
      const keys = spread(runs);
      const multiples = keys.map((_, place) => multipleOf(bytes[at + place]));
      at += keys.length;
      return { isRandom: kind === "r", text: atlas.texts[text], query, keys, multiples, nKeys, first, effective };
    });
  }
}

function spread(runs) {
  const found = [];
  for (let place = 0; place < runs.length; place += 2) {
    for (let step = 0; step < runs[place + 1]; step++) found.push(runs[place] + step);
  }
  return found;
}

// How many times an equal share a byte stands for.
const multipleOf = (code) => (code ? 2 ** ((code - 1) / atlas.steps + atlas.lowest) : 0);

// What is said of heads without a name: that they were held against nothing is something else than that none stands out.
export function unnamed(otherwise) {
  const isTested = atlas.measures.some(({ chance }) => chance !== null);
  return isTested ? otherwise : "not named: that takes --null random, which says what chance gives";
}

export const measureCalled = (title) => atlas.measures.findIndex((measure) => measure.title === title);
export const headCalled = (name) => atlas.heads.findIndex((head) => head.name === name);
const LEAST = 0.0005; // below which a number is next to nothing

export function short(value, digits = 3) {
  if (value === null) return "–";
  if (value !== 0 && Math.abs(value) < LEAST) return "≈ 0";
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// Heads by a name such as 18.6, by what they were found to do, or by a word that they look at; each with why.
export function findHeads(asked) {
  const wanted = asked.trim().toLowerCase();
  if (!wanted) return [];
  const numbers = /^l?(\d+)\s*[.h, ]\s*(\d+)$/.exec(wanted);
  if (numbers) return [[headCalled(`${Number(numbers[1])}.${Number(numbers[2])}`), ""]].filter(([place]) => place >= 0);
  const found = new Map();
  for (const [place, { names }] of atlas.heads.entries()) {
    const own = names.filter(([pattern]) => pattern.includes(wanted));
    if (own.length)
      found.set(
        place,
        own.map(([pattern, strength]) => `${pattern === wanted ? "" : `${pattern} `}${strength}`).join(", "),
      );
  }
  const named = [...found].sort(([, a], [, b]) => strengthOf(b) - strengthOf(a));
  for (const [word, , heads] of atlas.words) {
    if (word !== wanted) continue;
    for (const [place, lift] of heads) if (!found.has(place)) named.push([place, `“${word}” ${short(lift)} ×`]);
  }
  const listed = new Set(named.map(([place]) => place));
  for (const [place, { words }] of atlas.heads.entries()) {
    const own = words.find(([word]) => word === wanted);
    if (own && !listed.has(place)) named.push([place, `“${own[0]}” ${short(own[1])} ×`]);
  }
  return named;
}
