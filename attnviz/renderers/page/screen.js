// A text on one screen: the sentence under its arcs (arcs.js), the bar of its answer, and the list of heads
// by what they do, each with a switch that shows the answer without it.
import { AGAINST, asTold, DARKEST, FOR, inPercent, RECEIVED, Sentence } from "./arcs.js";
import { legend } from "./colour.js";
import { cellsOf, lineOfHead, maps, pictures, rowsOf } from "./content.js";
import { button, byId, chooser, content, element, isolated, roving, tint, write } from "./dom.js";
import { drawAll, Thumbnail } from "./pictures.js";
import { makers, scaleOf } from "./state.js";

const SIDE = 132; // pixels of a map without its labels
const N_KINDS = 6; // that have a colour of their own
const SAID = /^(?<name>.*?)( ?(?<none>\(.*\)|（没有）)| (?<share>\d+) %)?$/u; // "next token 96 %", of which a text may have none
const HERE = /; here |；这里 /u; // what a head does in this text that has no name over many
const KIND_AND_HEAD = /([^,;:，；：]* \d+\.\d+)(?= \d+ %)/u;
const PAIR = /^(?<query>\d+) .* → (?<key>\d+) /u;

makers.screen = (panel) => {
  const heads = headsByKind();
  const answer = content.answer && new AnswerBar(content.answer, heads);
  const sentence = new Sentence(heads);
  const rows = element("div", { class: "heads" });
  for (const head of heads) {
    head.small = smallMap(head, () => sentence.mark());
    rows.append(element("div", {}, head.small.button, answer?.switchOf(head) ?? ""));
  }
  roving(rows, ".map");
  roving(rows, "[role=switch]");
  panel.append(answer?.part ?? keyTo([RECEIVED, write("ui.received")]), sentence.part);
  const [namedBy, ...known] = content.hint.split(" · ");
  const hint = [namedBy, answer && write("ui.boxes")].filter(Boolean).join(" ");
  const line = lineOfKinds(heads);
  panel.append(byId("readout"), line, ...known.map(overManyTexts), element("p", { class: "hint" }, hint), rows);
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
    const [looks, strongest, weight] = lineOfHead(maps[number]).row.slice(-3);
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
  const line = element("p", { class: "kinds" });
  for (const [kind, ofKind] of Map.groupBy(heads, (head) => head.kind)) {
    const name = element("b", { style: { color: ofKind[0].colour } }, kind);
    line.append(element("span", {}, name, ...ofKind.flatMap((head) => [" ", leadTo(head)])));
  }
  roving(line, "button");
  return line;
}

function leadTo({ title, small }) {
  const lead = () => {
    small.button.focus({ preventScroll: true });
    small.button.scrollIntoView({ block: "center" });
  };
  return button(title, lead, { class: "plain" });
}

// What heads do that was measured over many texts, though this one may not show it: "induction 18.6" stands out.
function overManyTexts(said) {
  const parts = said.split(KIND_AND_HEAD).map((part, at) => (at % 2 ? element("b", {}, part) : part));
  return element("p", {}, ...parts);
}

// A map with words at its sides, and below it the head's strongest pair.
function smallMap({ number, title, kind, colour, share, here, pair, weight }, rest) {
  const { labels, positions } = rowsOf(maps[number]);
  const places = pair && [pair.query, pair.key].map((position) => positions.indexOf(position));
  const [query, key] = places?.map((place) => isolated(labels[place])) ?? [];
  const said = pair ? [element("br"), query, " → ", key, ` ${inPercent(weight)}`] : [];
  const looks = element("b", { class: "kind", style: { color: colour } }, kind);
  const shown = share ? ` ${share} %` : here ? ` (${here})` : "";
  const caption = () => [element("b", {}, title), " ", looks, shown, ...said];
  const picture = pictures.find((each) => each.maps.includes(number));
  const ways = { caption, smallest: 0, largest: SIDE / labels.length, pair: places };
  const small = new Thumbnail(picture, picture.maps.indexOf(number), scaleOf(), ways, rest);
  small.button.ariaCurrent = null; // of all of them none is chosen
  return Object.assign(small, { rows: labels, columns: labels });
}

function keyTo(...colours) {
  const look = (colour) => ({ class: "word", style: { "background-color": tint(DARKEST, colour) } });
  const swatches = colours.map(([colour, said]) => element("span", look(colour), said));
  return element("div", { class: "tools key" }, ...swatches);
}

// How probable the answer is, or which number it is; and what becomes of it without a head.
class AnswerBar {
  constructor(answer, heads) {
    Object.assign(this, { answer, switches: new Map() });
    [this.said, this.without] = [element("b"), element("span", { class: "hint" })];
    const [name, against] = [answer.label, answer.against].map(isolated);
    const range = { role: "meter", "aria-label": answer.label, "aria-valuemin": 0, "aria-valuemax": 1 };
    this.bar = element("span", { class: "meter", ...range }, element("i"), element("i"));
    const shown = answer.is_probability ? [this.bar, against] : [];
    const words = keyTo([FOR, write("ui.for", answer)], [AGAINST, write("ui.against")]);
    const known = heads.filter(({ number }) => maps[number].name in answer.heads);
    known.sort((a, b) => a.number - b.number);
    const options = [["", "–"], ...known.map(({ number, title }) => [String(number), title])];
    const choice = chooser(write("ui.without_head"), options, "", (number) =>
      this.turn(known.find((head) => String(head.number) === number)),
    );
    this.select = choice.querySelector("select");
    if (!known.length) choice.hidden = true;
    this.part = element("div", { class: "tools answer" }, words, name, this.said, ...shown, choice, this.without);
    this.show();
  }

  show(head) {
    const { value, heads } = this.answer;
    const now = head ? heads[maps[head.number].name] : value;
    this.said.textContent = asTold(now);
    this.without.textContent = head ? write("ui.without", { head: head.title, value: asTold(value) }) : "";
    this.bar.setAttribute("aria-valuenow", now);
    const [full, mark] = this.bar.children;
    full.style.width = `${100 * now}%`;
    mark.style.left = `${100 * value}%`;
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

  turn(out) {
    for (const [head, box] of this.switches) box.checked = head !== out;
    this.select.value = out ? String(out.number) : "";
    this.show(out);
  }
}
