// The text itself: a word that is pointed at shades what it attends to, or what attends to it.
import { legend, placeOfCell } from "./colour.js";
import { cellsOf, columnsOf, hasQueries, isDifference, rowsOf, tokenOf, writingOf } from "./content.js";
import { chooser, colourOf, element, isolated, named, roving, watch } from "./dom.js";
import { nameOfColumn, nameOfRow, notDrawn, tellCell } from "./readout.js";
import { change, mapOf, pictureOf, state } from "./state.js";

const SIDES = [
  ["from", "what the word attends to"],
  ["to", "what attends to the word"],
];
const N_LISTED = 10;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/u;
const LETTER = /\p{L}/u;

export async function text(panel) {
  const map = mapOf();
  if (!hasQueries(map)) {
    return notDrawn(panel, "The rows of this map are no words of a text; see it as a matrix.");
  }
  const passage = new Passage(await cellsOf(state.map), map, pictureOf());
  panel.append(passage.sides(), ...passage.figures, passage.list);
  const { scale } = pictureOf();
  const label = `shade: ${scale.label}`;
  return {
    legend: () => legend(scale, (place) => passage.paint(place), label, passage.cells.allowed !== null),
    mark: () => passage.mark(),
    draw: () => {
      passage.takeTints();
      passage.mark();
    },
  };
}

class Passage {
  constructor(cells, map, picture) {
    Object.assign(this, { cells, map, scale: picture.scale, signed: isDifference(picture), over: null });
    this.takeTints();
    this.isOneText = map.rows === map.columns;
    this.rows = this.words(rowsOf(map), "queries");
    this.columns = this.isOneText ? this.rows : this.words(columnsOf(map), "keys");
    const titled = (title, words) => [element("h2", { class: "axis" }, title), words];
    this.figures = this.isOneText
      ? [this.rows]
      : [...titled(map.row_axis, this.rows), ...titled(map.column_axis, this.columns)];
    this.list = element("div", { class: "listed" });
  }

  words(axis, name) {
    const { labels } = axis;
    const { spaced, special } = writingOf(axis);
    const words = element("div", {
      class: "passage",
      role: "group",
      "aria-label": name,
      dir: directionOf(labels, special),
    });
    for (const [place, label] of labels.entries()) {
      if (spaced[place] || special[place] || special[place - 1]) words.append(" ");
      const kind = special[place] ? "word special" : "word";
      const said = tokenOf(place, axis);
      words.append(
        element("button", { type: "button", class: kind, "data-place": place, title: said }, isolated(label)),
      );
    }
    watch(
      words,
      (place) => this.point(words, place),
      (place) => this.choose(words, place),
    );
    roving(words, ".word");
    return words;
  }

  sides() {
    const choose = (side) => change({ side: SIDES[side][0], query: state.query ?? state.key, key: null });
    const options = SIDES.map(([, title], side) => [side, title]);
    return chooser("Shade", options, state.side === "from" ? 0 : 1, choose);
  }

  isFrom(words) {
    return this.isOneText ? state.side === "from" : words === this.rows;
  }

  choose(words, place) {
    const name = this.isOneText || words === this.rows ? "query" : "key";
    change({ query: null, key: null, [name]: state[name] === place ? null : place });
  }

  point(words, place) {
    this.over = place === null ? null : { words, place };
    this.mark();
  }

  // The word that is pointed at, else the chosen one, else the query of the strongest cell: never an empty picture.
  current() {
    if (this.over) return this.over;
    if (!this.isOneText && state.key !== null) return { words: this.columns, place: state.key };
    this.first ??= this.cells.best(1)[0]?.[0] ?? 0;
    return { words: this.rows, place: state.query ?? this.first };
  }

  mark() {
    const { words, place } = this.current();
    const from = this.isFrom(words);
    const cellOf = (other) => (from ? [place, other] : [other, place]);
    const others = from ? this.columns : this.rows;
    for (const each of new Set([this.rows, this.columns])) {
      for (const [other, word] of [...each.children].entries()) {
        word.removeAttribute("aria-current");
        word.classList.toggle("forbidden", each === others && !this.cells.isAllowed(...cellOf(other)));
        const shaded = each === others && this.cells.isAllowed(...cellOf(other));
        word.style.backgroundColor = shaded ? this.paint(placeOfCell(this.cells, ...cellOf(other), this.scale)) : "";
      }
    }
    words.children[place].setAttribute("aria-current", "true");
    this.listStrongest(from, place, from ? this.cells.row(place) : this.cells.column(place));
  }

  listStrongest(from, place, places) {
    const strongest = this.cells.strongest(places, N_LISTED);
    const name = ([row, column]) => (from ? nameOfColumn(this.map, column) : nameOfRow(this.map, row));
    const rows = strongest.map((cell) =>
      element(
        "tr",
        {},
        element("td", {}, named(name(cell))),
        element("td", { class: "number" }, this.cells.said(...cell)),
      ),
    );
    const own = from ? nameOfRow(this.map, place) : nameOfColumn(this.map, place);
    const most = from ? " attends most to" : " is attended to most by";
    const caption = element("caption", {}, named(own), this.signed ? ": the largest differences" : most);
    this.list.replaceChildren(element("table", {}, caption, element("tbody", {}, ...rows)));
    if (strongest.length) tellCell(state.map, ...strongest[0]);
  }

  // Once for all words: asking for a colour after changing another makes the browser style the page anew.
  takeTints() {
    this.tints = [colourOf("--tint"), colourOf("--tint-below")];
  }

  // A tint of the paper, so that the word stays legible; of a difference one for each sign.
  paint(place) {
    const share = this.signed ? Math.abs(2 * place - 1) : place;
    const tint = this.signed && place < 0.5 ? this.tints[1] : this.tints[0];
    return `color-mix(in srgb, ${tint} ${(100 * share).toFixed(1)}%, transparent)`;
  }
}

// Which way a text runs: as most of its tokens that have letters and are no markers.
export function directionOf(labels, special) {
  const written = labels.filter((label, place) => !special[place] && LETTER.test(label));
  const leftwards = written.filter((label) => RIGHT_TO_LEFT.test(label)).length;
  return leftwards > written.length / 2 ? "rtl" : "ltr";
}
