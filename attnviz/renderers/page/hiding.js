// Maps without markers, or without the first token, as figures are with --hide-special and --drop-first: rows and columns
// are left out, colours are of equal shares among the keys that are left, and weights stay what they are.
import { Cells } from "./cells.js";
import { content, maps, readyWholeCells, showOnly } from "./content.js";
import { byId, chooser, element } from "./dom.js";
import { leaveOutTokens, pictureOf, state } from "./state.js";
import { hiding } from "./views.js";

const KINDS_OF_TOKENS = {
  markers: { option: "--hide-special", isOf: ({ writing }, place) => writing.special[place] },
  first: { option: "--drop-first", isOf: ({ positions }, place) => positions[place] === "0" },
};
const CHOICES = [
  ["", "all"],
  ["markers", "without markers"],
  ["first", "without the first"],
  ["markers,first", "without both"],
];
const MOST_LISTED = 8; // tokens that are left out
const SHARE_OF_ALL = "an equal share (1/n)";
const SHARE_OF_SHOWN = "an equal share among the keys shown";
const labelsOfScales = (content.scales ?? []).map(({ label }) => label);
const partOfAxis = new Map();

// Of an axis the places of its tokens that stay, of others all.
function keptOf(axis, names) {
  const { writing, labels: tokens } = content.axes[axis];
  const isLeftOut = (place) =>
    writing?.is_whole && names.some((name) => KINDS_OF_TOKENS[name].isOf(content.axes[axis], place));
  return [...tokens.keys()].filter((place) => !isLeftOut(place));
}

// Whether something is left out with these, and of no text all.
function canBeLeftOut(names) {
  const axes = [...new Set(maps.flatMap(({ allRows, allColumns }) => [allRows, allColumns]))];
  const kept = axes.map((axis) => keptOf(axis, names));
  const isLess = axes.some((axis, at) => kept[at].length < content.axes[axis].labels.length);
  return isLess && kept.every(({ length }) => length);
}

// An axis of these places alone, made once.
function axisOfPlaces(axis, places) {
  const { labels: tokens, positions, writing } = content.axes[axis];
  if (places.length === tokens.length) return axis;
  const key = `${axis} ${places}`;
  if (!partOfAxis.has(key)) {
    const of = (all) => places.map((place) => all[place]);
    const written = { ...writing, spaced: of(writing.spaced), special: of(writing.special) };
    content.axes.push({ labels: of(tokens), positions: of(positions), writing: written });
    partOfAxis.set(key, content.axes.length - 1);
  }
  return partOfAxis.get(key);
}

// Which tokens are left out from now on, by the names that a link has; those that cannot be are left in.
function leaveOut(asked) {
  const names = Object.keys(KINDS_OF_TOKENS).filter((name) => asked.split(",").includes(name));
  const chosen = canBeLeftOut(names) ? names : [];
  if (`${chosen}` === `${hiding.names}`) return;
  hiding.names = chosen;
  for (const map of maps.filter(({ backdrop }) => backdrop === null)) {
    const [rows, columns] = [map.allRows, map.allColumns].map((axis) => axisOfPlaces(axis, keptOf(axis, chosen)));
    Object.assign(map, { rows, columns });
  }
  for (const [place, label] of labelsOfScales.entries()) {
    content.scales[place].label = chosen.length ? label.replace(SHARE_OF_ALL, SHARE_OF_SHOWN) : label;
  }
  showOnly((number, cells) => partOfCells(cells, ...placesOf(number)));
}

// The rows and the columns of a map that are shown.
function placesOf(number) {
  const { allRows, allColumns, rows, columns } = maps[number];
  const shown = (all, axis) => (all === axis ? [...content.axes[all].labels.keys()] : keptOf(all, hiding.names));
  return [shown(allRows, rows), shown(allColumns, columns)];
}

function partOfCells(cells, rows, columns) {
  if (rows.length === cells.nRows && columns.length === cells.nColumns) return cells;
  const size = rows.length * columns.length;
  const stored = new cells.stored.constructor(size);
  const allowed = cells.allowed && new Uint8Array(Math.ceil(size / 8));
  const shares = Float32Array.from(rows, (row) => cells.shares[row]);
  for (const [y, row] of rows.entries()) {
    let [sum, n] = [0, 0];
    for (const [x, column] of columns.entries()) {
      const at = y * columns.length + x;
      stored[at] = cells.stored[row * cells.nColumns + column];
      if (!cells.isAllowed(row, column)) continue;
      if (allowed) allowed[at >> 3] |= 128 >> (at & 7);
      sum += cells.at(row, column);
      n++;
    }
    if (columns.length < cells.nColumns) shares[y] = (sum > 0 ? sum : 1) / Math.max(1, n);
  }
  return new Cells(rows.length, columns.length, allowed, stored, cells.precision, shares);
}

// The share of what the queries that are shown attend to that goes to keys that are not, as a mean over maps.
function shareLeftOut(numbers) {
  const means = numbers.map((number) => {
    const cells = readyWholeCells(number);
    const [rows, columns] = placesOf(number);
    const shares = rows.map((row) => {
      const sumOf = (places) =>
        places.reduce((sum, column) => sum + (cells.isAllowed(row, column) ? cells.at(row, column) : 0), 0);
      const whole = sumOf([...Array(cells.nColumns).keys()]);
      return whole && 1 - sumOf(columns) / whole;
    });
    return shares.reduce((sum, share) => sum + share, 0) / rows.length;
  });
  return means.reduce((sum, mean) => sum + mean, 0) / means.length;
}

// Which tokens are not there, and how much goes to them: when a view of maps is ready.
function sayLeftOut() {
  const said = byId("left-out");
  if (!hiding.names.length) return said.replaceChildren();
  const seen = { overview: () => pictureOf().maps, lines: () => state.heads, matrix: () => [state.map] };
  const numbers = seen[state.view]?.() ?? [];
  const number = numbers[0];
  if (number === undefined) return said.replaceChildren();
  const { labels: tokens, positions } = content.axes[maps[number].allColumns];
  const kept = new Set(placesOf(number)[1]);
  const out = [...tokens.keys()].filter((place) => !kept.has(place));
  const listed = out
    .slice(0, MOST_LISTED)
    .map((place) => `${positions[place]} ${tokens[place]}`)
    .join(", ");
  const share = 100 * shareLeftOut(numbers);
  const percent = readyWholeCells(number).precision ? `about ${Math.round(share)}%` : `${share.toFixed(1)}%`;
  const signed = (pictureOf().scale ?? content.scales[0]).is_signed;
  const what = `Not drawn: ${out.length} of ${tokens.length} tokens (${listed}${out.length > MOST_LISTED ? ", …" : ""}).`;
  const how = `Of what the queries drawn attend to, ${percent} is hidden with that. Weights stay what they are.`;
  return said.replaceChildren(element("bdi", {}, what), signed || !out.length ? "" : ` ${how}`);
}

function chooseTokens() {
  const isThere = (names) => canBeLeftOut(names) && names.every((name) => canBeLeftOut([name]));
  const offered = CHOICES.filter(([names]) => !names || isThere(names.split(",")));
  if (offered.length < 2) return "";
  return chooser("Tokens", offered, hiding.names.join(","), leaveOutTokens);
}

const optionsOfHiding = () => hiding.names.map((name) => KINDS_OF_TOKENS[name].option);

export const ofTokens = { leaveOut, say: sayLeftOut, options: optionsOfHiding, choose: chooseTokens };
