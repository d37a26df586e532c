// Weights that are worked out when they are looked at: exp(scale · q · k + bias by distance − log-sum-exp), in double.
import { Cells, shortest } from "./cells.js";

const MOST_PRODUCTS = 20e6; // of two numbers, and
const MOST_WEIGHTS = 3e6; // that a browser works out in less than a tenth of a second
const LN_NONE = Number.NEGATIVE_INFINITY; // of a weight that there is not

// q or k of every token: those that are unlike, and which of them each token has.
function side({ n, places, steps }, width, nTokens, numbers) {
  const rows = steps ? numbers.map((number, at) => number * steps[at % width]) : numbers;
  return { n, rows: Float64Array.from(rows), places: places ?? Uint32Array.from({ length: nTokens }, (_, at) => at) };
}

export class Factors {
  // `numbers`: the rows of q, then those of k; `pooled`: cells of the largest of `size` × `size` weights each.
  constructor({ query, key, width, scale, window, bias, attendable, shares, size }, numbers, logSumExp, pooled, error) {
    const [nRows, nColumns] = [logSumExp.length, attendable?.length ?? key.places?.length ?? key.n];
    Object.assign(this, { width, scale, bias, attendable, size, logSumExp, pooled, error, nRows, nColumns });
    const split = query.n * width;
    this.query = side(query, width, nRows, Float64Array.from(numbers.subarray(0, split)));
    this.key = side(key, width, nColumns, Float64Array.from(numbers.subarray(split)));
    this.shares = shares.map((share) => share || 1); // of padding there is none
    this.lead = 0; // tokens by which the first block is shorter than others
    [this.back, this.forward] = window.map((reach) => reach ?? nRows + nColumns);
    this.allowed = attendable !== null || this.back < nRows || this.forward < nColumns ? true : null;
  }

  isAllowed(row, column) {
    const apart = column - row;
    return apart >= -this.back && apart <= this.forward && (this.attendable === null || this.attendable[column] === 1);
  }

  // What is added to a score for each distance, from `first` on; the farthest that the bias has stands for all beyond.
  biases(first, length) {
    const { bias } = this;
    const most = bias ? (bias.length - 1) / 2 : 0;
    const clipped = (apart) => Math.min(most, Math.max(-most, apart));
    return Float64Array.from({ length }, (_, at) => (bias ? bias[clipped(first + at) + most] : 0));
  }

  // The logarithms of one query's weights on the keys from `left` up to `right`.
  logs(row, left, right, biases, found = new Float64Array(right - left)) {
    const { width, scale, bias } = this;
    const [q, of, k, places] = [this.query.rows, this.query.places[row] * width, this.key.rows, this.key.places];
    const all = biases ?? this.biases(left - row, bias ? right - left : 0);
    const less = this.logSumExp[row];
    for (let column = left; column < right; column++) {
      const at = places[column] * width;
      let sum = 0;
      for (let d = 0; d < width; d++) sum += q[of + d] * k[at + d];
      found[column - left] = sum * scale - less + (bias ? all[column - left] : 0);
    }
    if (this.allowed) {
      for (let column = left; column < right; column++)
        if (!this.isAllowed(row, column)) found[column - left] = LN_NONE;
    }
    return found;
  }

  at(row, column) {
    return Math.exp(this.logs(row, column, column + 1)[0]);
  }

  said(row, column, digits = null) {
    if (!this.isAllowed(row, column)) return "not allowed";
    const weight = this.at(row, column);
    if (digits) return String(Number(weight.toPrecision(digits)));
    return this.error
      ? `${weight.toPrecision(4)} ± ${Number((100 * this.error).toPrecision(2))} %`
      : shortest(Math.fround(weight));
  }

  // Whether the weights between some rows and columns are worked out while nobody notices.
  isQuick(top, bottom, left, right) {
    const [height, width] = [bottom - top, right - left];
    if (height * width > MOST_WEIGHTS) return false;
    const [queries, keys] = [unlike(this.query.places, top, bottom), unlike(this.key.places, left, right)];
    return queries.rows.length * keys.rows.length * this.width <= MOST_PRODUCTS;
  }

  // Cells of `pool` × `pool` weights each, the largest of them, between some rows and columns (beginning at whole cells).
  // Of tokens that are alike, each product is worked out once.
  tile(top, bottom, left, right, pool) {
    const [height, width, length] = [Math.ceil((bottom - top) / pool), Math.ceil((right - left) / pool), right - left];
    const logs = new Float64Array(height * width).fill(LN_NONE);
    const shares = new Float32Array(height);
    const [queries, keys] = [unlike(this.query.places, top, bottom), unlike(this.key.places, left, right)];
    const products = new Products(this, queries.rows, keys.rows);
    const first = left - bottom + 1; // the distance of the first key from the last query
    const biases = this.biases(first, bottom - top + length);
    const closed = Float64Array.from({ length }, (_, at) => (this.attendable?.[left + at] === 0 ? LN_NONE : 0));
    for (let row = top; row < bottom; row++) {
      const scores = products.of(queries.places[row - top]);
      const shift = left - row - first;
      const less = this.logSumExp[row];
      const [from, to] = [Math.max(0, row - this.back - left), Math.min(length, row + this.forward - left + 1)];
      const line = Math.floor((row - top) / pool);
      shares[line] = Math.max(shares[line], this.shares[row]);
      const added = biases.subarray(shift, shift + length);
      largestOf(scores, keys.places, added, closed, from, to, pool, less, logs.subarray(line * width));
    }
    return new Cells(height, width, this.allowed && bitsOf(logs), exponentials(logs), null, shares);
  }

  // The pair with the largest weight between some rows and columns: of very many, in the cell that has it.
  strongestWithin(top, bottom, left, right) {
    if ((bottom - top) * (right - left) * this.width > MOST_PRODUCTS) {
      const { size, lead } = this;
      const [row, column] = this.largestCell(...[top, bottom, left, right].map((at) => (at + lead) / size));
      return this.strongestIn(row * size - lead, column * size - lead, size);
    }
    let [most, best] = [LN_NONE, null];
    for (let row = top; row < bottom; row++) {
      const line = this.logs(row, left, right);
      for (let at = 0; at < line.length; at++) if (line[at] > most) [most, best] = [line[at], [row, left + at]];
    }
    return best ? { query: best[0], key: best[1] } : { query: top, key: left };
  }

  strongestIn(row, column, size) {
    const [bottom, right] = [Math.min(row + size, this.nRows), Math.min(column + size, this.nColumns)];
    return this.strongestWithin(Math.max(0, row), bottom, Math.max(0, column), right);
  }

  largestCell(top, bottom, left, right) {
    let [most, best] = [-1, null];
    for (let row = Math.floor(top); row < bottom; row++) {
      for (let column = Math.floor(left); column < right; column++) {
        if (this.pooled.at(row, column) > most) [most, best] = [this.pooled.at(row, column), [row, column]];
      }
    }
    return best;
  }

  // As the method of cells with every one at hand.
  strongestOf(query, key, number) {
    const { nRows, nColumns } = this;
    const logs =
      query === null
        ? Float64Array.from({ length: nRows }, (_, row) => this.logs(row, key, key + 1)[0])
        : this.logs(query, 0, nColumns);
    const kept = [];
    for (let at = 0; at < logs.length; at++) {
      if (logs[at] === LN_NONE || (kept.length === number && logs[at] <= logs[kept.at(-1)])) continue;
      const after = kept.findIndex((each) => logs[each] < logs[at]);
      kept.splice(after < 0 ? kept.length : after, 0, at);
      kept.length = Math.min(kept.length, number);
    }
    return kept.map((at) => (query === null ? [at, key] : [query, at]));
  }

  // The largest weights of the cells that have the largest.
  best(number) {
    const { size, lead } = this;
    return this.pooled.best(number).map(([row, column]) => {
      const { query, key } = this.strongestIn(row * size - lead, column * size - lead, size);
      return [query, key];
    });
  }
}

// Of each `pool` keys in a row the largest logarithm; a function of its own, which a browser makes quick.
function largestOf(scores, places, added, closed, from, to, pool, less, found) {
  for (let at = from; at < to; ) {
    const cell = Math.floor(at / pool);
    const end = Math.min((cell + 1) * pool, to);
    let most = LN_NONE;
    for (; at < end; at++) {
      const log = scores[places[at]] + added[at] + closed[at];
      if (log > most) most = log;
    }
    if (most - less > found[cell]) found[cell] = most - less;
  }
}

function exponentials(logs) {
  const found = new Float32Array(logs.length);
  for (let at = 0; at < logs.length; at++) found[at] = Math.exp(logs[at]);
  return found;
}

function multiplied(query, keys, scores) {
  for (let key = 0, at = 0; key < scores.length; key++) {
    let sum = 0;
    for (let d = 0; d < query.length; d++) sum += query[d] * keys[at++];
    scores[key] = sum;
  }
  return scores;
}

// The rows that some tokens have, each once, and which of them each token has.
function unlike(rowOf, from, to) {
  const found = new Map();
  const places = new Uint32Array(to - from);
  for (let at = from; at < to; at++) {
    const row = rowOf[at];
    if (!found.has(row)) found.set(row, found.size);
    places[at - from] = found.get(row);
  }
  return { rows: [...found.keys()], places };
}

// Scores of some rows of q on some rows of k, of each row of q when it is first asked for.
class Products {
  constructor({ query, key, width, scale }, queries, keys) {
    Object.assign(this, { query: query.rows, width, scale, queries, nKeys: keys.length, found: new Map() });
    this.keys = new Float64Array(keys.length * width);
    for (const [at, row] of keys.entries())
      this.keys.set(key.rows.subarray(row * width, (row + 1) * width), at * width);
  }

  of(place) {
    if (!this.found.has(place)) this.found.set(place, this.workedOut(this.queries[place]));
    return this.found.get(place);
  }

  workedOut(row) {
    const { keys, width, nKeys } = this;
    const query = this.query.slice(row * width, (row + 1) * width).map((number) => number * this.scale);
    return multiplied(query, keys, new Float64Array(nKeys));
  }
}

// Where attention is allowed, a bit for each cell.
function bitsOf(logs) {
  const bits = new Uint8Array(Math.ceil(logs.length / 8));
  for (let at = 0; at < logs.length; at++) if (logs[at] > LN_NONE) bits[at >> 3] |= 128 >> (at & 7);
  return bits;
}
