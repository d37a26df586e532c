// What the page of a long text has beside the others: its cells are means of blocks, and beside them stand the text
// around one pair of tokens and the weights of its query, which are exact.
import { bytesOf, unpackedExact } from "./cells.js";
import { inkOn, paintOf, placeOfCell } from "./colour.js";
import { content, maps, parts } from "./content.js";
import { element, isolated, nextFrame, roving } from "./dom.js";
import { Factors } from "./factors.js";
import { strongestOf } from "./text.js";
import { long } from "./views.js";

const N_AROUND = 12; // tokens on either side
const firstOfTokens = content.axes.length;
const unpackedFactors = new Map();

for (const labels of content.factored.tokens) {
  content.axes.push({ labels, positions: labels.map((_, place) => String(place)) });
}

long.contextOf = (number, cells, scale) => {
  if (!unpackedFactors.has(number)) unpackedFactors.set(number, unpackFactors(number));
  return new Context(unpackedFactors.get(number), number, cells, scale);
};

function unpackFactors(number) {
  const { factors } = maps[number];
  const [nRows, nColumns] = [factors.rows, factors.columns].map((axis) => content.factored.tokens[axis].length);
  const array = (place, type) => (place === null ? null : new type(bytesOf(content.factored.arrays[place]).buffer));
  const given = {
    ...factors,
    bias: array(factors.bias, Float32Array),
    attendable: array(factors.attendable, Uint8Array),
    shares: array(factors.shares, Float32Array),
  };
  const numbers = unpackedExact(...parts[factors.part], (nRows + nColumns) * factors.width + nRows);
  return new Factors(given, numbers, nRows, nColumns);
}

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
    const { map } = this;
    const title = (text) => element("h2", { class: "axis" }, text);
    const around = [title(map.row_axis), this.queries(query, key), title(map.column_axis), this.keys(query, key)];
    this.part.replaceChildren(...around, strongestOf(map, this.factors, query).table);
  }

  // Each of them can be chosen.
  queries(query, key) {
    const words = passage(content.axes[this.map.rows], query, (place, word) => {
      const onclick = () => {
        this.show({ query: place, key });
        this.part.querySelector("[aria-current]").focus();
      };
      return element(
        "button",
        { type: "button", class: "word", "aria-current": place === query || null, onclick },
        word,
      );
    });
    roving(words, ".word");
    return words;
  }

  // As dark as cells of single weights.
  keys(query, key) {
    return passage(content.axes[this.map.columns], key, (place, word) => {
      const shown = element("span", { class: place === key ? "word answer" : "word" }, word);
      const shade = placeOfCell(this.factors, query, place, this.scale);
      if (shade === 0) return shown;
      shown.style.backgroundColor = paintOf(this.scale)(shade);
      shown.style.color = inkOn(shade, this.scale);
      return shown;
    });
  }
}

function passage({ labels }, place, made) {
  const [from, to] = [Math.max(0, place - N_AROUND), place + N_AROUND + 1];
  const words = labels.slice(from, to).flatMap((label, at) => [made(from + at, isolated(label)), " "]);
  const ends = [from ? "… " : "", to < labels.length ? "…" : ""];
  return element("div", { class: "passage" }, ends[0], ...words, ends[1]);
}
