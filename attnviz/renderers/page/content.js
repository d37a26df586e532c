// What the page holds: its document, and the cells of each map, unpacked when they are first asked for.
import { bytesOf, Cells, inflated, unpackedExact, unpackedRanges } from "./cells.js";
import { byId } from "./dom.js";

export const content = JSON.parse(byId("content").textContent);
export const pictures = content.pictures;
export const maps = content.maps.map((own) => ({ ...content.alike, ...own })); // what all have alike is held once

const ownPositions = (labels) => ({ labels, positions: labels.map((_, place) => String(place)), writing: null });
const firstOfTokens = content.axes?.length; // a page of charts has none
content.axes?.push(...(content.factored?.tokens ?? []).map(ownPositions));

// Of a map whose cells stand for many weights each, the map of these; else it itself.
export const wholeMaps = maps.map((map, number) => {
  const factors = content.factored?.maps[number];
  if (!factors) return map;
  const [rows, columns] = [firstOfTokens + factors.rows, firstOfTokens + factors.columns];
  const pooledColumns = content.axes[map.columns].positions.map((position) => Number.parseInt(position, 10));
  return { ...map, rows, columns, factors, pooledColumns };
});

const promised = new Map();
const unpacked = new Map();

export const rowsOf = (map) => content.axes[map.rows];
export const columnsOf = (map) => content.axes[map.columns];
export const isDifference = (scale) => scale.is_signed;
export const isLift = (scale) => scale.is_multiple;
export const hasQueries = (map) => map.row_axis.startsWith("query");
export const isLayered = (picture) => picture.maps.every((number) => maps[number].layer !== null);

// What a head is known for, or nothing.
export const nameIn = ({ names }, place) => names?.[place] ?? "";

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

// The bytes of a block, the first part inflated; they need not be kept twice.
export async function takeParts(id) {
  const block = byId(id);
  const [deflated, ...others] = block.textContent.split(" ").map(bytesOf);
  block.textContent = "";
  return [await inflated(deflated), ...others];
}

// How a text is written: where spaces stand, and which tokens are markers of the model.
export function writingOf({ labels, writing }) {
  return writing ?? { spaced: labels.map((_, place) => place > 0), special: labels.map(() => false) };
}
