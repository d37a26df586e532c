// What the page holds: its document, and the cells of each map, unpacked when they are first asked for.
import { bytesOf, Cells, inflated, unpackedExact, unpackedRanges } from "./cells.js";
import { byId } from "./dom.js";

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

export function cellsOf(number) {
  maps[number].cells ??= unpack(number);
  return maps[number].cells;
}

function unpack(number) {
  const map = maps[number];
  const [nRows, nColumns] = [rowsOf(map), columnsOf(map)].map(({ labels }) => labels.length);
  const mask = content.masks[map.mask];
  const allowed = mask ? bytesOf(mask) : null;
  const isExact = content.exact[number];
  const precision = isExact ? null : content.precision;
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

// How a text is written: where spaces stand, and which tokens are markers of the model.
export function writingOf({ labels, writing }) {
  return writing ?? { spaced: labels.map((_, place) => place > 0), special: labels.map(() => false) };
}
