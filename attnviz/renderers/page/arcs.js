// A sentence with arcs over it: from the word that is pointed at, or chosen, to the words that heads look at from there.
import { pathOf, spotsOf } from "./arc-paths.js";
import { cellsOf, maps, rowsOf, writingOf } from "./content.js";
import { content, drawing, element, isolated, say, tell, tint, write } from "./dom.js";
import { paint } from "./painting.js";
import { change, state } from "./state.js";
import { writeWords } from "./text.js";

const LOOKS = 0.25; // weight from which on a head is said to look at a word
export const DARKEST = 0.5; // of a word's tint, so that it stays legible
const N_TOLD_WORDS = 4;
export const [FOR, AGAINST, RECEIVED] = ["var(--head-1)", "var(--head-0)", "var(--tint)"];
export const inPercent = (share) => `${Math.round(100 * share)}\u00a0%`; // no line breaks before the sign
export const asTold = (number) =>
  content.answer.is_probability ? inPercent(number) : String(Number(number.toPrecision(3)));
const headsOf = (n) => write(n === 1 ? "ui.one_head" : "ui.n_heads", { n });

export class Sentence {
  constructor(heads) {
    const axis = rowsOf(maps[content.screen[0]]);
    Object.assign(this, { ...axis, heads, over: null });
    const point = (place) => {
      this.over = place;
      this.mark();
    };
    const choose = (place) => change({ query: state.query === place ? null : place, key: null });
    this.words = writeWords(axis, write("ui.text"), point, choose);
    this.arcs = drawing("svg", { class: "over", "aria-hidden": "true" });
    this.part = element("div", { class: "sentence" }, this.arcs, this.words);
    const { special } = writingOf(axis); // markers receive much, and are no words
    const received = (key) => heads.reduce((sum, { number }) => sum + cellsOf(number).received()[key], 0);
    const gain = (place) => content.answer?.words[axis.positions[place]] ?? (special[place] ? 0 : received(place));
    const strengths = axis.labels.map((_, place) => gain(place));
    const most = Math.max(...strengths.map(Math.abs)) || 1;
    for (const [place, strength] of strengths.entries()) {
      const colour = strength < 0 ? AGAINST : content.answer ? FOR : RECEIVED;
      this.words.children[place].style.backgroundColor = tint((DARKEST * Math.abs(strength)) / most, colour);
    }
    const places = [...strengths.keys()].sort((a, b) => Math.abs(strengths[b]) - Math.abs(strengths[a]));
    this.first = places.find((place) => this.looksOf(place).some(({ key }) => key !== place)) ?? 0;
  }

  looksOf(place) {
    return this.heads.flatMap((head) => {
      const cells = cellsOf(head.number);
      const keys = cells.strongestOf(place, null, cells.nColumns).map(([, key]) => key);
      return keys.map((key) => ({ head, key, weight: cells.at(place, key) })).filter(({ weight }) => weight >= LOOKS);
    });
  }

  // The word that is pointed at, or that is chosen, or else the one that did most: its arcs, and what they say.
  mark() {
    const place = this.over ?? state.query ?? this.first;
    const looks = this.looksOf(place);
    for (const [at, word] of [...this.words.children].entries()) {
      word.ariaCurrent = at === place ? "true" : null;
    }
    const byKey = [...Map.groupBy(looks, ({ key }) => key)].sort(([, a], [, b]) => b.length - a.length);
    const told = byKey.slice(0, N_TOLD_WORDS).flatMap(([key, heads], at) => {
      const word = key === place ? write("ui.itself") : element("strong", {}, isolated(this.labels[key]));
      return [at ? write("ui.comma") : "", ...say("ui.looked_at", { word, heads: headsOf(heads.length) })];
    });
    const word = element("strong", {}, isolated(this.labels[place]));
    const { label, value, words } = content.answer ?? {};
    const did = words && {
      label: isolated(label),
      now: asTold(value),
      without: asTold(value - words[this.positions[place]]),
    };
    if (!told.length) told.push(write("ui.no_word"));
    tell(...say(words ? "ui.did_and_looks" : "ui.looks", { word, told, ...did }));
    this.draw(place, byKey);
    const isLit = (this.over ?? state.query) !== null;
    for (const { small } of this.heads) {
      small.lit = isLit ? { query: place, key: null, word: true } : null;
      small.over = small.lit;
      if (small.gutter) paint(small); // it is laid out
    }
  }

  draw(place, byKey) {
    const width = this.part.clientWidth;
    const spots = spotsOf(this.part, [...this.words.children]);
    const isLeftwards = this.words.dir === "rtl";
    const arcs = byKey
      .filter(([key]) => key !== place)
      .flatMap(([key, looks]) =>
        looks.map(({ head, weight }, at) => {
          const d = pathOf(spots, spots[place], spots[key], { at, width, isLeftwards });
          const look = { stroke: head.colour, "stroke-width": 1 + 4 * weight };
          const title = drawing("title", {}, `${head.title}: ${this.labels[key]} ${inPercent(weight)}`);
          return drawing("path", { d, ...look, "data-head": head.title, "data-key": key }, title);
        }),
      );
    this.arcs.replaceChildren(...arcs);
  }
}
