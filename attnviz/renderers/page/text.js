// The text itself beside its map: a word that is pointed at shades what it attends to, or what attends to it.
import { inkOn, paintOf, placeOfCell } from "./colour.js";
import { columnsOf, directionOf, nameOfColumn, nameOfRow, rowsOf, tokenOf, writingOf } from "./content.js";
import { button, chooser, content, element, isolated, named, roving, say, write } from "./dom.js";
import { said } from "./readout.js";
import { change, state } from "./state.js";

const SIDES = [
  ["from", write("ui.attended")],
  ["to", write("ui.attending")],
];
const N_LISTED = 10;

// The tokens of a text, or some of them, as it is written, each to be pointed at or chosen.
export function writeWords(axis, name, point, choose, [from, to] = [0, axis.labels.length]) {
  const { labels, texts } = axis;
  const { spaced, special } = writingOf(axis);
  const dir = directionOf(labels, special);
  const words = element("div", { class: "passage", role: "group", "aria-label": name, dir });
  if (from > 0) words.append("… ");
  for (let place = from; place < Math.min(to, labels.length); place++) {
    if (spaced[place] || special[place] || special[place - 1]) words.append(" ");
    const kind = special[place] ? "word special" : texts ? "word whole" : "word";
    const title = texts ? null : tokenOf(place, axis);
    const hears = { onpointerover: () => point(place), onfocusin: () => point(place) };
    words.append(button(isolated((texts ?? labels)[place]), () => choose(place), { class: kind, title, ...hears }));
  }
  if (to < labels.length) words.append(" …");
  for (const kind of ["pointerleave", "focusout"]) words.addEventListener(kind, () => point(null));
  roving(words, ".word");
  return words;
}

// As its cell on the map; an equal share at most has no colour there.
export function shadeWord(word, cells, place, scale) {
  const isAllowed = cells.isAllowed(...place);
  const shade = isAllowed ? placeOfCell(cells, ...place, scale) : 0;
  const none = !isAllowed || (shade === 0 && scale.is_multiple);
  word.classList.toggle("forbidden", !isAllowed);
  word.style.backgroundColor = none ? "" : paintOf(scale)(shade);
  word.style.color = none ? "" : inkOn(shade, scale);
}

export class Passage {
  constructor(cells, map, scale, point) {
    Object.assign(this, { cells, map, scale, signed: scale.is_signed, point });
    this.isOneText = map.rows === map.columns;
    this.rows = this.words(rowsOf(map), write("ui.queries"));
    this.columns = this.isOneText ? this.rows : this.words(columnsOf(map), write("ui.keys"));
    const choose = (side) => change({ side, query: state.key, key: state.query });
    const titled = (title, words) => [element("h2", { class: "axis" }, title), words];
    this.list = element("div", { class: "listed" });
    const passages = this.isOneText
      ? [chooser(write("ui.shade"), SIDES, state.side, choose), this.rows]
      : [titled(map.row_axis, this.rows), titled(map.column_axis, this.columns)];
    if (rowsOf(map).texts) passages.reverse().unshift(element("p", { class: "hint" }, ...content.hint)); // they are long
    this.parts = [...passages.flat(), this.list];
  }

  words(axis, name) {
    const [isQuery, isKey] = [this.isOneText || axis === rowsOf(this.map), this.isOneText || axis !== rowsOf(this.map)];
    const at = (place) => ({ query: isQuery ? place : null, key: isKey ? place : null, word: true });
    const point = (place) => this.point(place === null ? null : at(place));
    return writeWords(axis, name, point, (place) => this.choose(isQuery, place));
  }

  choose(isQuery, place) {
    const name = (this.isOneText ? state.side === "from" : isQuery) ? "query" : "key";
    change({ query: null, key: null, [name]: state[name] === place ? null : place });
  }

  // A word, or both of a cell, else the query of the strongest one: never an empty picture. Gives the strongest there.
  mark(at) {
    this.first ??= this.cells.best(1)[0]?.[0] ?? 0;
    const { query, key, word } = at ?? { query: this.first, key: this.first, word: true };
    const isOfKey = query === null || (key !== null && state.query === null && state.key === key);
    const from = this.isOneText ? state.side === "from" : !isOfKey;
    const [words, place, answer] = from ? [this.rows, query, key] : [this.columns, key, query];
    const cellOf = (other) => (from ? [place, other] : [other, place]);
    const others = from ? this.columns : this.rows;
    for (const each of new Set([this.rows, this.columns])) {
      for (const [other, written] of [...each.children].entries()) {
        written.removeAttribute("aria-current");
        written.className = written.className.replace(/ (answer|forbidden)/gu, "");
        if (each === others) shadeWord(written, this.cells, cellOf(other), this.scale);
        else written.removeAttribute("style");
      }
    }
    words.children[place].setAttribute("aria-current", "true");
    if (!word) others.children[answer].classList.add("answer");
    const { strongest, table } = strongestOf(this.map, this.cells, place, from, this.signed);
    this.list.replaceChildren(table);
    if (!strongest.length) return null;
    const [[row, column]] = strongest;
    others.scrollTop = others.children[from ? column : row].offsetTop - others.offsetTop; // where not all are in sight
    return { query: row, key: column };
  }
}

// What a query attends to most, or what attends most to a key, and as a table.
export function strongestOf(map, cells, place, from = true, signed = false) {
  const strongest = cells.strongestOf(from ? place : null, from ? null : place, N_LISTED);
  const name = ([row, column]) => (from ? nameOfColumn(map, column) : nameOfRow(map, row));
  const rows = strongest.map((cell) => {
    const number = element("td", { class: "number" }, said(cells, ...cell));
    return element("tr", {}, element("td", {}, named(name(cell))), number);
  });
  const own = from ? nameOfRow(map, place) : nameOfColumn(map, place);
  const title = say(signed ? "ui.largest" : from ? "ui.most_to" : "ui.most_by", { own: named(own) });
  return { strongest, table: element("table", {}, element("caption", {}, ...title), element("tbody", {}, ...rows)) };
}
