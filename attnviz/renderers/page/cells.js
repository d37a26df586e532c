// The cells of one map as numbers, from the bytes that the page carries. What is known of each is an interval.
import { write } from "./dom.js";

const UNIT_LEVEL = 64; // the level of weight 1; each level below is a factor of four
const DOUBLE = 0x00800000;
const word = new DataView(new ArrayBuffer(4));

function floatOf(bits) {
  word.setUint32(0, bits >>> 0);
  return word.getFloat32(0);
}

export function bytesOf(base64) {
  const text = atob(base64);
  return new Uint8Array(text.length).map((_, at) => text.charCodeAt(at));
}

export async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function unpackedExact(upper, lower, nCells) {
  const values = new Float32Array(nCells);
  for (let i = 0; i < nCells; i++) {
    values[i] = floatOf((upper[i] << 24) | (upper[nCells + i] << 16) | (lower[i] << 8) | lower[nCells + i]);
  }
  return values;
}

// Codes: the upper byte is the level, the lower one the 8 bits below it, or 0 where only the level is known.
export function unpackedRanges(levels, rest, nRows, nColumns, { floor, fine }) {
  const codes = new Uint16Array(nRows * nColumns);
  const height = Math.ceil(nRows / 2);
  const below = UNIT_LEVEL - 1 - floor;
  let next = 0;
  for (let row = 0; row < nRows; row++) {
    for (let column = 0; column < nColumns; column++) {
      const pair = levels[column * height + (row >> 1)];
      const level = below + (row & 1 ? pair & 15 : pair >> 4);
      const lower = level >= UNIT_LEVEL - fine ? rest[next++] : 0;
      codes[row * nColumns + column] = (level << 8) | lower;
    }
  }
  return codes;
}

function intervalOf(code, { floor, fine }) {
  const level = code >> 8;
  if (level >= UNIT_LEVEL - fine) {
    const bits = code * 0x10000 - DOUBLE;
    return [floatOf(bits), Math.min(1, floatOf(bits + 0x10000))];
  }
  const power = UNIT_LEVEL - level;
  return [power > floor ? 0 : 4 ** -power, 4 ** (1 - power)];
}

export class Cells {
  constructor(nRows, nColumns, allowed, stored, precision, shares) {
    Object.assign(this, { nRows, nColumns, allowed, stored, precision, shares });
    if (precision) precision.middles ??= middlesOf(precision); // one precision is of all maps of a page
    this.middles = precision?.middles;
  }

  at(row, column) {
    const stored = this.stored[row * this.nColumns + column];
    return this.precision ? this.middles[stored] : stored;
  }

  isAllowed(row, column) {
    const place = row * this.nColumns + column;
    return this.allowed === null || ((this.allowed[place >> 3] >> (7 - (place & 7))) & 1) === 1;
  }

  // Whether it is known to a few per cent.
  isFine(row, column) {
    return !this.precision || isFine(this.stored[row * this.nColumns + column], this.precision);
  }

  // The number in the nine digits that a float32 has, and how far it may be from the weight; or in so many digits.
  said(row, column, digits = null) {
    if (!this.isAllowed(row, column)) return write(this.isOfPairs ? "ui.one_cell" : "ui.not_allowed");
    const value = this.at(row, column);
    const short = (number) => String(Number(number.toPrecision(digits)));
    if (this.isFine(row, column)) {
      if (digits) return short(value);
      return this.precision ? `${value.toPrecision(4)} ± 0.5 %` : String(Number(value.toPrecision(9)));
    }
    const code = this.stored[row * this.nColumns + column];
    const [low, high] = intervalOf(code, this.precision).map(digits ? short : String);
    return write(low === "0" ? "ui.below" : "ui.between", { low, high });
  }

  // Of a query's row, or of a key's column where the query is null: [row, column] each, of equal ones the earlier.
  strongestOf(query, key, number) {
    const length = query === null ? this.nRows : this.nColumns;
    const places = Array.from({ length }, (_, at) => (query === null ? [at, key] : [query, at]));
    return places
      .filter((place) => this.isAllowed(...place) && this.at(...place) !== 0)
      .sort((a, b) => Math.abs(this.at(...b)) - Math.abs(this.at(...a)))
      .slice(0, number);
  }

  // The strongest of all, or of some: kept in order while looking once at each, since there may be very many.
  best(number, [top, bottom] = [0, this.nRows], [left, right] = [0, this.nColumns]) {
    const kept = [];
    for (let row = top; row < Math.min(bottom, this.nRows); row++) {
      for (let column = left; column < Math.min(right, this.nColumns); column++) {
        const strength = Math.abs(this.at(row, column));
        if (strength === 0 || strength <= (kept[number - 1]?.strength ?? 0) || !this.isAllowed(row, column)) continue;
        const after = kept.findIndex((each) => each.strength < strength);
        kept.splice(after < 0 ? kept.length : after, 0, { strength, place: [row, column] });
        kept.length = Math.min(kept.length, number);
      }
    }
    return kept.map(({ place }) => place);
  }

  // What each column gets in equal shares, as the mean of all rows.
  received() {
    if (this.means === undefined) {
      this.means = new Float64Array(this.nColumns);
      for (let row = 0; row < this.nRows; row++) {
        for (let column = 0; column < this.nColumns; column++) {
          if (!this.isAllowed(row, column)) continue;
          this.means[column] += this.at(row, column) / this.shares[row] / this.nRows;
        }
      }
    }
    return this.means;
  }

  // Columns that get at least so many equal shares, most first.
  columnsThatGet(times) {
    const means = this.received();
    return [...means.keys()].filter((column) => means[column] >= times).sort((a, b) => means[b] - means[a]);
  }
}

const isFine = (code, { fine }) => code >> 8 >= UNIT_LEVEL - fine;

// What stands for an interval in a picture or an order: its middle, by factors where it is wide.
function middlesOf(precision) {
  const made = new Float64Array((UNIT_LEVEL + 1) << 8);
  for (const code of made.keys()) {
    const [low, high] = intervalOf(code, precision);
    made[code] = isFine(code, precision) || low === 0 ? (low + high) / 2 : Math.sqrt(low * high);
  }
  return made;
}
