// What the page holds: its document, and the cells of each map, unpacked when they are first asked for.
import { bytesOf, Cells, inflated, unpackedExact, unpackedRanges } from "./cells.js";
import { byId } from "./dom.js";

export const content = JSON.parse(byId("content").textContent);
export const pictures = content.pictures;
// What all have alike is held once. Of the rows and the columns there may be less to be seen than all: `hiding.js`.
export const maps = content.maps.map((own, number) => {
  const map = { ...content.alike, ...own };
  return { ...map, allRows: map.rows, allColumns: map.columns, factors: content.factored?.maps[number] };
});

const [promised, unpacked, promisedWhole, unpackedWhole] = [new Map(), new Map(), new Map(), new Map()];
let shownOf = (_, cells) => cells;

export const rowsOf = (map) => content.axes[map.rows];
export const columnsOf = (map) => content.axes[map.columns];
export const isDifference = (scale) => scale.is_signed;
export const isLift = (scale) => scale.is_multiple;
export const hasQueries = (map) => map.row_axis.startsWith("query");
export const isLayered = (picture) => picture.maps.every((number) => maps[number].layer !== null);

// What a head is known for, or nothing.
export const nameIn = ({ names }, place) => names?.[place] ?? "";

// And how strongly, over many texts.
export const strengthIn = ({ strengths }, place) => strengths?.[place] ?? "";

// The line of the table of heads that is a map's, if there is one.
export function lineOfHead({ layer, head }) {
  const table = content.tables.find(({ role }) => role === "heads");
  const place = table?.rows.findIndex((row) => row[0] === layer && row[1] === head) ?? -1;
  return place < 0 ? null : { row: table.rows[place], shown: table.shown[place], columns: table.columns };
}

// A token is identified by its position; of a block of tokens, by the first and the last.
export const tokenOf = (place, axis) => `${axis.positions[place]} ${axis.labels[place]}`;

// What is to be seen of a map, and all of it.
export const readyCells = (number) => unpacked.get(number);
export const readyWholeCells = (number) => unpackedWhole.get(number);

export function cellsOf(number) {
  if (!promised.has(number)) promised.set(number, takePart(number, shownOf));
  return promised.get(number);
}

export function wholeCellsOf(number) {
  if (!promisedWhole.has(number)) promisedWhole.set(number, unpack(number));
  return promisedWhole.get(number);
}

async function takePart(number, of) {
  const part = await of(number, await wholeCellsOf(number));
  if (of === shownOf) unpacked.set(number, part);
  return part;
}

// `of`: from a map's number and its cells to those of them that are seen from now on.
export function showOnly(of) {
  shownOf = of;
  for (const each of [promised, unpacked]) each.clear();
}

async function unpack(number) {
  const map = maps[number];
  const [nRows, nColumns] = [map.allRows, map.allColumns].map((axis) => content.axes[axis].labels.length);
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
  unpackedWhole.set(number, cells);
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
