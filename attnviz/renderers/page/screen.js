// A text on one screen: the sentence under its arcs, the bar of its answer, and the list of heads
// by what they do, each with a switch that shows the answer without it.
import { pathOf, spotsOf } from "./arc-paths.js";
import { legend } from "./colour.js";
import { cellsOf, columnsOf, lineOfHead, maps, pictures, rowsOf, writingOf } from "./content.js";
import { button, byId, content, drawing, element, isolated, roving, say, tell, tint, write } from "./dom.js";
import { paint } from "./painting.js";
import { drawAll, Thumbnail } from "./pictures.js";
import { change, makers, scaleOf, state } from "./state.js";
import { writeWords } from "./text.js";

const SIDE = 132; // pixels of a map without its labels
const N_KINDS = 6; // that have a colour of their own
const SAID = /^(?<name>.*?)( ?(?<none>\(.*\)|（没有）)| (?<share>\d+) %)?$/u; // "next token 96 %", of which a text may have none
const HERE = /; here |；这里 /u; // what a head does in this text that has no name over many
const PAIR = /^(?<query>\d+) .* → (?<key>\d+) /u;
const LOOKS = 0.25; // weight from which on a head is said to look at a word
const DARKEST = 0.5; // of a word's tint, so that it stays legible
const [N_TOLD_WORDS, N_TOLD_HEADS] = [4, 3];
const [FOR, AGAINST, RECEIVED] = ["var(--head-1)", "var(--head-0)", "var(--tint)"];
const inPercent = (share) => `${Math.round(100 * share)}\u00a0%`; // no line breaks before the sign
const asTold = (number) => (content.answer.is_probability ? inPercent(number) : String(Number(number.toPrecision(3))));

// A sentence with arcs over it: from the word that is pointed at, or chosen, to the words that heads look at from there.
// Its words are those that were read; a row may be called by the one that was chosen there, which comes next.
class Sentence {
  constructor(heads) {
    const axis = columnsOf(maps[content.screen[0]]);
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
      const names = heads.sort((a, b) => b.weight - a.weight).map(({ head }) => head.title);
      if (names.length > N_TOLD_HEADS) names.splice(N_TOLD_HEADS, names.length, "…");
      return [at ? write("ui.comma") : "", ...say("ui.looked_at", { word, heads: names.join(", ") })];
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

makers.screen = (panel) => {
  const heads = headsByKind();
  const answer = content.answer && new AnswerBar(content.answer);
  const sentence = new Sentence(heads);
  const rows = element("div", { class: "heads" });
  for (const head of heads) {
    head.small = smallMap(head, () => sentence.mark());
    rows.append(element("div", {}, head.small.button, answer?.switchOf(head) ?? ""));
  }
  roving(rows, ".map");
  roving(rows, "[role=switch]");
  panel.append(answer?.part ?? keyTo([RECEIVED, write("ui.received")]), sentence.part);
  const [namedBy, ...known] = content.hint;
  const hint = [namedBy, answer && write("ui.boxes")].filter(Boolean).join(" ");
  // What heads do that was measured over many texts, though this one may not show it.
  const overManyTexts = known.length ? element("p", {}, known.join(" · ")) : "";
  panel.append(byId("readout"), lineOfKinds(heads), overManyTexts, element("p", { class: "hint" }, hint), rows);
  const draw = () => {
    drawAll(heads.map(({ small }) => small));
    sentence.mark();
  };
  draw();
  const forbids = content.screen.some((number) => cellsOf(number).allowed);
  const scale = scaleOf();
  return {
    isScreen: true,
    legend: () => legend(scale, forbids),
    mark: () => sentence.mark(),
    draw,
  };
};

// Heads by what they look at, the clearest kind first; what is not in this text is grey, and comes last beside what has no
// name.
function headsByKind() {
  const heads = content.screen.map((number) => {
    const [, , looks, strongest, weight] = lineOfHead(maps[number]).row;
    const [said, here] = looks.split(HERE);
    const { name, none, share = 0 } = SAID.exec(said).groups;
    const kind = name === "-" ? write("ui.nameless") : name;
    const isNamed = Boolean(share || none);
    const { layer, head } = maps[number];
    const pair = PAIR.exec(strongest)?.groups;
    return { number, kind, isNamed, share: Number(share), here, title: `${layer}.${head}`, pair, weight };
  });
  heads.sort((a, b) => b.isNamed - a.isNamed || b.share - a.share);
  const named = [...Map.groupBy(heads, ({ kind }) => kind).values()];
  for (const [place, of] of named.entries()) {
    const colour = !of[0].share || place >= N_KINDS ? "var(--quiet)" : `var(--head-${place})`;
    for (const head of of) head.colour = colour;
  }
  return named.flat();
}

// Each kind with its heads, which lead to their maps: on a narrow screen those are far below.
function lineOfKinds(heads) {
  const line = element("p", { class: "tools kinds" });
  for (const [kind, ofKind] of Map.groupBy(heads, (head) => head.kind)) {
    const name = element("b", { style: { color: ofKind[0].colour } }, kind);
    const leads = ofKind.map(({ title, small }) => button(title, () => small.button.focus(), { class: "plain" }));
    line.append(element("span", {}, name, ...leads.flatMap((lead) => [" ", lead])));
  }
  roving(line, "button");
  return line;
}

// A map with words at its sides, and below it the head's strongest pair.
function smallMap({ number, title, kind, colour, share, here, pair, weight }, rest) {
  const [{ labels: rows, positions }, { labels: columns }] = [rowsOf(maps[number]), columnsOf(maps[number])];
  const places = pair && [pair.query, pair.key].map((position) => positions.indexOf(position));
  const [query, key] = places ? [isolated(rows[places[0]]), isolated(columns[places[1]])] : [];
  const said = pair ? [element("br"), query, " → ", key, ` ${inPercent(weight)}`] : [];
  const looks = element("b", { class: "kind", style: { color: colour } }, kind);
  const shown = share ? ` ${share}\u00a0%` : here ? ` (${here})` : "";
  const caption = () => [element("b", {}, title), " ", looks, shown, ...said];
  const picture = pictures.find((each) => each.maps.includes(number));
  const ways = { caption, smallest: 0, largest: SIDE / rows.length, pair: places };
  const small = new Thumbnail(picture, picture.maps.indexOf(number), scaleOf(), ways, rest);
  small.button.ariaCurrent = null; // of all of them none is chosen
  return Object.assign(small, { rows, columns });
}

function keyTo(...colours) {
  const look = (colour) => ({ class: "word", style: { "background-color": tint(DARKEST, colour) } });
  const swatches = colours.map(([colour, said]) => element("span", look(colour), said));
  return element("div", { class: "tools key" }, ...swatches);
}

// How probable the answer is, or which number it is; and what becomes of it without a head.
class AnswerBar {
  constructor(answer) {
    Object.assign(this, { answer, switches: new Map() });
    [this.said, this.without] = [element("b"), element("span", { class: "hint" })];
    const [name, against] = [answer.label, answer.against].map(isolated);
    const range = { role: "meter", "aria-label": answer.label, "aria-valuemin": 0, "aria-valuemax": 1 };
    this.bar = element("span", { class: "meter", ...range }, element("i"), element("i"));
    const shown = answer.is_probability ? [this.bar, against] : [];
    const words = keyTo([FOR, write("ui.for", answer)], [AGAINST, write("ui.against")]);
    this.part = element("div", { class: "tools answer" }, words, name, this.said, ...shown, this.without);
    this.turn();
  }

  // One head at a time: what two do together is not known.
  switchOf(head) {
    if (!(maps[head.number].name in this.answer.heads)) return "";
    const label = write("ui.takes_part", { head: head.title });
    const box = element("input", {
      type: "checkbox",
      role: "switch",
      checked: true,
      "aria-label": label,
      title: label,
      onchange: () => this.turn(box.checked ? undefined : head),
    });
    this.switches.set(head, box);
    return box;
  }

  // What the answer is without a head; without any, what it is.
  turn(out) {
    for (const [head, box] of this.switches) box.checked = head !== out;
    const { value, heads } = this.answer;
    const now = out ? heads[maps[out.number].name] : value;
    this.said.textContent = asTold(now);
    this.without.textContent = out ? write("ui.without", { head: out.title, value: asTold(value) }) : "";
    this.bar.setAttribute("aria-valuenow", now);
    const [full, mark] = this.bar.children;
    full.style.width = `${100 * now}%`;
    mark.style.left = `${100 * value}%`;
  }
}
