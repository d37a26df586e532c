// Of the factors of a long text's weights those of its tokens from one up to another, and blocks of their weights.
import { Cells, DOUBLE, UNIT_LEVEL } from "./cells.js";

// Each token is query and key. What an equal share is among these keys, and as `leftOut` how much goes to all others, as
// a mean over the queries.
export function partOfFactors(whole, from, to) {
  const { size, shares, attendable, nColumns, logSumExp } = whole;
  const side = ({ n, rows, places }) => ({ n, rows, places: places.subarray(from, to) });
  const part = Object.assign(Object.create(Object.getPrototypeOf(whole)), whole, {
    query: side(whole.query),
    key: side(whole.key),
    logSumExp: logSumExp.subarray(from, to),
    attendable: attendable?.subarray(from, to) ?? null,
    shares: shares.slice(from, to),
    lead: from % size,
    nRows: to - from,
    nColumns: to - from,
    leftOut: 0,
  });
  for (let row = from; row < to; row++) {
    const logs = [...whole.logs(row, 0, from), ...whole.logs(row, to, nColumns)].filter(Number.isFinite);
    const share = logs.reduce((sum, log) => sum + Math.exp(log), 0);
    const nShown = Math.max(1, Math.round(1 / shares[row]) - logs.length);
    part.shares[row - from] = (share < 1 ? 1 - share : 1) / nShown;
    part.leftOut += share / (to - from);
  }
  part.pooled = partOfPooled(whole, part.shares, from, to);
  return part;
}

// Blocks of which some tokens are left out are worked out anew, all others are as they were.
function partOfPooled(whole, shares, from, to) {
  const { size, pooled, allowed: isMasked, nRows } = whole;
  const { precision, stored, nColumns, isPooled } = pooled;
  const first = Math.floor(from / size);
  const n = Math.ceil(to / size) - first;
  const part = new Cells(
    n,
    n,
    isMasked && new Uint8Array(Math.ceil((n * n) / 8)),
    null,
    precision,
    new Float32Array(n),
  );
  Object.assign(part, { isPooled, stored: new stored.constructor(n * n) });
  const allow = (at, isAllowed) => {
    if (isAllowed) part.allowed[at >> 3] |= 128 >> (at & 7);
    else part.allowed[at >> 3] &= ~(128 >> (at & 7));
  };
  for (let row = 0; row < n; row++) {
    const begin = (row + first) * nColumns + first;
    part.stored.set(stored.subarray(begin, begin + n), row * n);
    for (let column = 0; isMasked && column < n; column++) {
      allow(row * n + column, pooled.isAllowed(row + first, column + first));
    }
  }
  const second = Math.min(to, (first + 1) * size);
  const ends = [from, second, Math.max(second, (first + n - 1) * size), to];
  const bands = [0, 1, 2].map((at) => [ends[at], ends[at + 1]]).filter(([begin, end]) => begin < end);
  const isCut = ([begin, end]) => begin % size > 0 || (end % size > 0 && end < nRows);
  for (const [rows, columns] of bands.flatMap((rows) => bands.map((columns) => [rows, columns]))) {
    if (!isCut(rows) && !isCut(columns)) continue;
    const tile = whole.tile(...rows, ...columns, size);
    const [top, left] = [rows, columns].map(([begin]) => Math.floor(begin / size) - first);
    for (const [place, weight] of tile.stored.entries()) {
      const [row, column] = [Math.floor(place / tile.nColumns), place % tile.nColumns];
      const at = (top + row) * n + left + column;
      part.stored[at] = precision ? codeOf(weight, precision) : weight;
      if (isMasked) allow(at, tile.isAllowed(row, column));
    }
  }
  for (const [row, share] of shares.entries()) {
    const block = Math.floor((row + from) / size) - first;
    part.shares[block] = Math.max(part.shares[block], share);
  }
  return part;
}

// Of a weight, as it would be stored.
function codeOf(weight, { floor, fine }) {
  const [bits] = new Uint32Array(Float32Array.of(weight).buffer);
  const code = (bits + DOUBLE) >>> 16;
  const level = Math.max(code >> 8, UNIT_LEVEL - 1 - floor);
  return (level << 8) | (level >= UNIT_LEVEL - fine ? code & 255 : 0);
}
