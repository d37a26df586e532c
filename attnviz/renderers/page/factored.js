// What the page of a long text has beside the others: its cells are means of blocks, and beside them stand the text
// around one pair of tokens and the weights of its query, which are exact.
import { bytesOf, Cells, unpackedExact } from "./cells.js";
import { maps, parts } from "./content.js";
import { content, element, nextFrame } from "./dom.js";
import { makers } from "./state.js";
import { shadeWord, strongestOf, writeWords } from "./text.js";

const N_AROUND = 12; // tokens on either side
const firstOfTokens = content.axes.length;

for (const labels of content.factored.tokens) {
  content.axes.push({ labels, positions: labels.map((_, place) => String(place)) });
}

makers.context = (number, cells, scale) => {
  maps[number].unpacked ??= new Factors(maps[number].factors);
  return new Context(maps[number].unpacked, number, cells, scale);
};

class Context {
  constructor(factors, number, cells, scale) {
    const { rows, columns } = maps[number].factors;
    const map = { ...maps[number], rows: firstOfTokens + rows, columns: firstOfTokens + columns };
    Object.assign(this, { factors, map, scale, part: element("div", { class: "listed" }) });
    const [[query, key] = [0, 0]] = cells.best(1);
    this.first = { query, key };
  }

  // Of a cell its largest weight; of none the cell with the largest.
  mark(cell) {
    this.cell = cell ?? this.first;
    nextFrame(this, () => this.show(this.factors.strongestIn(this.cell.query, this.cell.key, this.map.block)));
  }

  show({ query, key }) {
    const { map, factors } = this;
    const part = (name, axis, place, go) => {
      const around = [Math.max(0, place - N_AROUND), place + N_AROUND + 1];
      const choose = (at) => {
        this.show(go(at));
        this.part.querySelector("[aria-current]").focus();
      };
      const words = writeWords(content.axes[axis], name, () => {}, choose, around);
      this.part.append(element("h2", { class: "axis" }, name), words);
      return [...words.children].map((word, at) => [word, around[0] + at]);
    };
    this.part.replaceChildren();
    const queries = part(map.row_axis, map.rows, query, (at) => ({ query: at, key }));
    const keys = part(map.column_axis, map.columns, key, (at) => ({ query, key: at }));
    for (const [word, at] of queries) if (at === query) word.ariaCurrent = "true";
    for (const [word, at] of keys) {
      shadeWord(word, factors, [query, at], this.scale);
      word.classList.toggle("answer", at === key);
    }
    this.part.append(strongestOf(map, factors, query).table);
  }
}

// Weights that are worked out when they are looked at: exp(scale · q · k + bias by distance − log-sum-exp), in double.
class Factors extends Cells {
  // As `factor_parts` describes a head: most of its numbers stand elsewhere on the page, and some heads share them.
  constructor({ rows, columns, part, width, scale, window, bias, attendable, shares }) {
    const [nRows, nColumns] = [rows, columns].map((axis) => content.factored.tokens[axis].length);
    const array = (place, type) => (place === null ? null : new type(bytesOf(content.factored.arrays[place]).buffer));
    super(nRows, nColumns, null, null, null, array(shares, Float32Array));
    Object.assign(this, { width, scale, bias: array(bias, Float32Array), attendable: array(attendable, Uint8Array) });
    const [ofKeys, ofSums] = [nRows * width, (nRows + nColumns) * width];
    const numbers = unpackedExact(...parts[part], ofSums + nRows); // q, k and log-sum-exp of each query
    this.query = numbers.subarray(0, ofKeys);
    this.key = numbers.subarray(ofKeys, ofSums);
    this.logSumExp = numbers.subarray(ofSums);
    [this.back, this.forward] = window.map((reach) => reach ?? Number.POSITIVE_INFINITY);
  }

  isAllowed(row, column) {
    const apart = column - row;
    return apart >= -this.back && apart <= this.forward && (this.attendable === null || this.attendable[column] === 1);
  }

  at(row, column) {
    if (!this.isAllowed(row, column)) return 0;
    const { query, key, width, bias } = this;
    let sum = 0;
    for (let d = 0; d < width; d++) sum += query[row * width + d] * key[column * width + d];
    const most = bias ? (bias.length - 1) / 2 : 0; // the farthest that the bias has stands for all beyond
    const added = bias ? bias[Math.min(most, Math.max(-most, column - row)) + most] : 0;
    return Math.exp(sum * this.scale + added - this.logSumExp[row]);
  }

  // The pair with the largest weight in a cell of `block` × `block` of them; the first of them where all are 0.
  strongestIn(row, column, block) {
    const [top, left] = [row * block, column * block];
    const [[query, key] = [top, left]] = this.best(1, [top, top + block], [left, left + block]);
    return { query, key };
  }
}
