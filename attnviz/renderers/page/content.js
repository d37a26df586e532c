// What the page holds: its document, and the cells of each map, unpacked when they are first asked for.
import { bytesOf, Cells, inflated, unpackedExact, unpackedRanges } from "./cells.js";
import { byId } from "./dom.js";

const packed = new TextDecoder().decode(await inflated(bytesOf(byId("packed").textContent)));
export const content = { ...JSON.parse(byId("content").textContent), ...JSON.parse(packed) };
export const pictures = content.pictures;
// What all have alike is held once.
export const maps = content.maps.map((own, number) => {
  return { ...content.alike, ...own, factors: content.factored?.maps[number] };
});

const [promised, unpacked] = [new Map(), new Map()];

export const rowsOf = (map) => content.axes[map.rows];
export const columnsOf = (map) => content.axes[map.columns];
export const isDifference = (scale) => scale.is_signed;
export const hasQueries = (map) => map.row_axis.startsWith("query");
export const isLayered = (picture) => picture.maps.every((number) => maps[number].layer !== null);

// What a head is known for, or nothing.
export const nameIn = ({ names }, place) => names?.[place] ?? "";

// The line of the table of heads that is a map's, if there is one.
export function lineOfHead({ layer, head }) {
  const table = content.tables.find(({ role }) => role === "heads");
  const place = table?.rows.findIndex((row) => row[0] === layer && row[1] === head) ?? -1;
  return place < 0 ? null : { row: table.rows[place], shown: table.shown[place], columns: table.columns };
}

// A token is identified by its position; of a block of tokens, by the first and the last.
export const tokenOf = (place, axis) => `${axis.positions[place]} ${axis.labels[place]}`;

export const readyCells = (number) => unpacked.get(number);

export function cellsOf(number) {
  if (!promised.has(number)) promised.set(number, unpack(number));
  return promised.get(number);
}

async function unpack(number) {
  const map = maps[number];
  const [nRows, nColumns] = [rowsOf(map), columnsOf(map)].map(({ labels }) => labels.length);
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
  cells.isOfPairs = map.row_axis === map.column_axis; // such as heads with heads: each two of them have one cell
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
