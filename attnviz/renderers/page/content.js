// What the page holds: its document, and the cells of each map, unpacked when they are first asked for.
import { bytesOf, Cells, inflated, unpackedExact, unpackedRanges } from "./cells.js";
import { byId } from "./dom.js";
import { Factors } from "./factors.js";

export const content = JSON.parse(byId("content").textContent);
export const pictures = content.pictures;
export const maps = content.maps.map((own) => ({ ...content.alike, ...own })); // what all have alike is held once

const ownPositions = (labels) => ({ labels, positions: labels.map((_, place) => String(place)), writing: null });
const firstOfTokens = content.axes.length;
content.axes.push(...(content.factored?.tokens ?? []).map(ownPositions));

// Of a map whose cells stand for many weights each, the map of these; else it itself.
export const wholeMaps = maps.map((map, number) => {
  const factors = content.factored?.maps[number];
  if (!factors) return map;
  const [rows, columns] = [firstOfTokens + factors.rows, firstOfTokens + factors.columns];
  const pooledColumns = content.axes[map.columns].positions.map((position) => Number.parseInt(position, 10));
  return { ...map, rows, columns, factors, pooledColumns };
});

const promised = new Map();
const worked = new Map();
const unpacked = new Map();

export const rowsOf = (map) => content.axes[map.rows];
export const columnsOf = (map) => content.axes[map.columns];
export const isDifference = (scale) => scale.kind === "diverging";
export const isLift = (scale) => scale.kind === "lift";
export const hasQueries = (map) => map.row_axis.startsWith("query");
export const isLayered = (picture) => picture.maps.every((number) => maps[number].layer !== null);

// A token is identified by its position; of a block of tokens, by the first and the last.
export const tokenOf = (place, axis) => `${axis.positions[place]} ${axis.labels[place]}`;

export const readyCells = (number) => unpacked.get(number);

export function cellsOf(number) {
  if (!promised.has(number)) promised.set(number, unpack(number));
  return promised.get(number);
}

async function unpack(number) {
  const map = maps[number];
  const [nRows, nColumns] = [rowsOf(map).labels.length, columnsOf(map).labels.length];
  const parts = await takeParts(`cells-${number}`);
  const mask = content.masks[map.mask];
  const allowed = mask ? bytesOf(mask) : null;
  const isExact = content.exact[number];
  const precision = isExact ? null : content.precision;
  const stored = isExact
    ? unpackedExact(...parts, nRows * nColumns)
    : unpackedRanges(...parts, nRows, nColumns, precision);
  const shares = new Float32Array(bytesOf(content.shares[map.shares]).buffer);
  const cells = new Cells(nRows, nColumns, allowed, stored, precision, shares);
  unpacked.set(number, cells);
  return cells;
}

// What the weights of a map are worked out from, unpacked when it is first asked for.
export function factorsOf(number) {
  if (!worked.has(number)) worked.set(number, unpackFactors(number));
  return worked.get(number);
}

async function unpackFactors(number) {
  const { factors } = wholeMaps[number];
  const { query, key, width } = factors;
  const pooled = await cellsOf(number);
  const parts = await takeParts(`factors-${number}`);
  const array = (place, type) => (place === null ? null : new type(bytesOf(content.factored.arrays[place]).buffer));
  const of = (side) => ({ ...side, places: array(side.places, Uint32Array), steps: array(side.steps, Float32Array) });
  const nRows = rowsOf(wholeMaps[number]).labels.length;
  const nNumbers = (query.n + key.n) * width;
  const [deflated, raw, rounded] = parts;
  const exact = unpackedExact(deflated, raw, nRows + (rounded ? 0 : nNumbers));
  const given = {
    ...factors,
    query: of(query),
    key: of(key),
    bias: array(factors.bias, Float32Array),
    attendable: array(factors.attendable, Uint8Array),
    shares: array(factors.shares, Float32Array),
  };
  const numbers = rounded ? new Int16Array(rounded.buffer) : exact.subarray(0, nNumbers);
  return new Factors(given, numbers, exact.subarray(exact.length - nRows), pooled, content.factored.error);
}

// The bytes of a block, the first part inflated; they need not be kept twice.
async function takeParts(id) {
  const block = byId(id);
  const [deflated, ...others] = block.textContent.split(" ").map(bytesOf);
  block.textContent = "";
  return [await inflated(deflated), ...others];
}

// How a text is written: where spaces stand, and which tokens are markers of the model.
export function writingOf({ labels, writing }) {
  return writing ?? { spaced: labels.map((_, place) => place > 0), special: labels.map(() => false) };
}
