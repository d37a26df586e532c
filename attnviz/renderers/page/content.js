// What the page holds: its document, and the cells of each map, unpacked when they are first asked for.
import { bytesOf, Cells, inflated, unpackedExact, unpackedRanges } from "./cells.js";
import { byId } from "./dom.js";

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/u;
const LETTER = /\p{L}/u;

export const pictures = content.pictures;
export const maps = content.maps.map((own, number) => ({ ...own, factors: content.factored?.maps[number] }));

// What was packed of each map, in two halves, of which the first is deflated.
const [deflated, rest] = byId("cells").textContent.split(" ").map(bytesOf);
const halves = [await inflated(deflated), rest];
byId("cells").remove(); // they need not be kept twice
const begin = [0, 0];
export const parts = content.parts.map((lengths) =>
  lengths.map((length, half) => {
    begin[half] += length;
    return halves[half].subarray(begin[half] - length, begin[half]);
  }),
);

export const rowsOf = (map) => content.axes[map.rows];
export const columnsOf = (map) => content.axes[map.columns];

// The line of the table of heads that is a map's, if there is one.
export function lineOfHead({ layer, head }) {
  const table = content.tables.find(({ role }) => role === "heads");
  const place = table?.rows.findIndex((row) => row[0] === layer && row[1] === head) ?? -1;
  return place < 0 ? null : { row: table.rows[place], shown: table.shown[place], columns: table.columns };
}

// A token is identified by its position, which is all that one without a name has; a block by the first and the last.
export const tokenOf = (place, axis) => [...new Set([axis.positions[place], axis.labels[place]])].join(" ");

export function cellsOf(number) {
  maps[number].cells ??= unpack(number);
  return maps[number].cells;
}

function unpack(number) {
  const map = maps[number];
  const [nRows, nColumns] = [rowsOf(map), columnsOf(map)].map(({ labels }) => labels.length);
  const mask = content.masks[map.mask];
  const allowed = mask ? bytesOf(mask) : null;
  const precision = content.exact[number] ? null : content.precision;
  const stored = storedIn(number, nRows, nColumns, precision);
  const shares = new Float32Array(bytesOf(content.shares[map.shares]).buffer);
  const cells = new Cells(nRows, nColumns, allowed, stored, precision, shares);
  cells.isOfPairs = map.row_axis === map.column_axis; // such as heads with heads: each two of them have one cell
  return cells;
}

// The cells of a part, as numbers or, at a precision, as codes.
export function storedIn(part, nRows, nColumns, precision) {
  if (!precision) return unpackedExact(...parts[part], nRows * nColumns);
  return unpackedRanges(...parts[part], nRows, nColumns, precision);
}

// Whether a text stands beside a map, which an image does not: it is within.
export const hasText = (map, { is_signed }) => map.factors || map.has_queries || (is_signed && columnsOf(map).writing);

// How a text is written: where spaces stand, and which tokens are markers of the model.
export function writingOf({ labels, writing }) {
  return writing ?? { spaced: labels.map((_, place) => place > 0), special: labels.map(() => false) };
}

// Which way a text runs: as most of its tokens that have letters and are no markers.
export function directionOf(labels, special) {
  const written = labels.filter((label, place) => !special[place] && LETTER.test(label));
  const leftwards = written.filter((label) => RIGHT_TO_LEFT.test(label)).length;
  return leftwards > written.length / 2 ? "rtl" : "ltr";
}

// What stands at a row or a column of a map: a token with its position, or a name.
export const nameOfRow = (map, row) => (map.has_queries ? tokenOf(row, rowsOf(map)) : rowsOf(map).labels[row]);
export const nameOfColumn = (map, column) =>
  map.has_queries || map.has_keys ? tokenOf(column, columnsOf(map)) : columnsOf(map).labels[column];
export const namesOf = (map) => ({
  rows: rowsOf(map).labels.map((_, row) => nameOfRow(map, row)),
  columns: columnsOf(map).labels.map((_, column) => nameOfColumn(map, column)),
});
