// One head of an atlas: what it is called, attention by offset, words, moments as text, and its numbers.
import { pathOf, spotsOf } from "./arc-paths.js";
import { atlas, short, unnamed } from "./atlas-data.js";
import { drawChart } from "./axes.js";
import { inkOn, paintOf, placeOf } from "./colour.js";
import { directionOf } from "./content.js";
import { copyButton, drawing, dress, element, isolated } from "./dom.js";
import { shownTable } from "./tables.js";

const WIDTH = 340; // pixels of the curve
const N_FIRST = 3; // moments of a kind
export const SHADES = atlas.shades;
const MOMENTS = [
  ["strongest", "Strongest moments", "where one key takes most beyond an equal share; one of a text"],
  ["random", "Random moments", "what it does all day; the same ones for every head"],
];

export function headCard(place) {
  const head = atlas.heads[place];
  const title = element("h2", { id: `head-${place}` }, `Head ${head.name}`);
  const names = head.names.map(([pattern, strength]) =>
    element("li", {}, element("b", {}, atlas.letters[pattern]), ` ${pattern} ${strength}`),
  );
  const none = element("p", { class: "hint" }, unnamed("no single pattern"));
  const card = element("article", { class: "card", "aria-labelledby": `head-${place}` }, title);
  card.append(names.length ? element("ul", { class: "tools names" }, ...names) : none);
  if (head.words.length) card.append(wordsOf(head));
  for (const [kind, heading, about] of MOMENTS) card.append(...momentsOf(head, kind, heading, about));
  card.append(element("h3", {}, "Attention by offset from the query"), curveOf(head), ...numbersOf(place));
  return card;
}

function wordsOf({ words }) {
  const each = words.map(([word, lift, support]) =>
    element("li", {}, isolated(word), element("span", { class: "hint" }, ` ${short(lift)} × (${support})`)),
  );
  const about = element("span", { class: "hint" }, " × an equal share (times in the texts)");
  const heading = element("h3", {}, "Words attended to", about);
  return element("section", {}, heading, element("ul", { class: "tools" }, ...each));
}

// The first ones at once, the others when they are asked for.
function momentsOf({ name, moments }, kind, title, about) {
  const shown = moments.filter((moment) => moment.kind === kind).map((moment) => momentOf(moment, name));
  if (!shown.length) return [];
  const heading = element("h3", {}, title, element("span", { class: "hint" }, ` ${about}`));
  const others = shown.splice(N_FIRST);
  if (others.length) shown.push(element("details", {}, element("summary", {}, `${others.length} more`), ...others));
  return [heading, ...shown];
}

function momentOf(moment, head) {
  const { query, keys, weights, n_keys, to_first, effective_keys } = moment;
  const [text, multiples] = [atlas.texts[moment.text], weights.map((weight) => weight * n_keys)];
  const labels = keys.map((key) => text.at.get(key));
  const dir = directionOf(labels, []);
  const words = element("p", { class: "moment", dir });
  for (const [place, key] of keys.entries()) {
    if (place ? key > keys[place - 1] + 1 : key > 0) words.append(" … ");
    const [label, multiple] = [labels[place], multiples[place]];
    if (label.startsWith(" ")) words.append(" ");
    const word = element("span", { class: "word" }, isolated(label.trimStart()));
    if (key === query) word.ariaCurrent = "true";
    word.title = `${key} ${label.trimStart()}: ${short(weights[place])}, ${short(multiple, 2)} × an equal share`;
    const shade = placeOf(multiple, SHADES);
    if (shade) Object.assign(word.style, { backgroundColor: paintOf(SHADES)(shade), color: inkOn(shade, SHADES) });
    words.append(word);
  }
  const best = multiples.indexOf(Math.max(...multiples.map((multiple, place) => (keys[place] ? multiple : -1))));
  const share = weights[best];
  const arc = drawing("svg", { class: "over", "aria-hidden": true });
  const places = [...words.children];
  const draw = () => {
    const [spots, from] = [spotsOf(words, places), keys.indexOf(query)];
    const size = { at: 0, width: words.clientWidth, isLeftwards: words.dir === "rtl" };
    const d = from < 0 || from === best || multiples[best] <= 1 ? "" : pathOf(spots, spots[from], spots[best], size);
    arc.replaceChildren(drawing("path", { d, stroke: "var(--accent)", "stroke-width": 1 + 2 * share }));
  };
  new ResizeObserver(draw).observe(words); // it is laid out, and again
  Object.assign(words, { draw }).append(arc);
  const most = [`${keys[best]} “`, isolated(labels[best].trim()), `” ${short(share)} (${short(multiples[best], 2)} ×)`];
  const ofFirst = `first token ${short(to_first)}`;
  const numbers = to_first > share ? [`${ofFirst}, then `, ...most] : ["most to ", ...most, ` · ${ofFirst}`];
  const where = `${text.title}, token ${query} · `;
  const about = element("p", { class: "hint" }, where, ...numbers, ` · ${short(effective_keys)} effective keys`);
  return element("div", { class: "of-moment" }, words, about, ...commandsOf(text, head, query));
}

// Commands stand below a moment once they are asked for.
function commandsOf(text, head, query) {
  const asked = atlas.commands.filter(([, command]) => command.includes("{query}") && text.options);
  const filled = { "{options}": text.options, "{head}": head, "{query}": String(query) };
  const fill = (command) => command.replace(/\{(options|head|query)\}/g, (part) => filled[part]);
  const lines = asked.map(([title, command]) => commandLine(title, fill(command)));
  return lines.length ? [element("details", {}, element("summary", {}, "Draw this"), ...lines)] : [];
}

export function commandLine(title, command) {
  const copy = copyButton("Copy", `copy the command: ${title}`, () => command);
  return element("div", { class: "tools" }, `${title}: `, element("code", { tabindex: 0 }, command), copy);
}

// Shares by offset, against what attention gives that favours no key; the largest is labelled.
function curveOf({ curve, name }) {
  const peak = curve.indexOf(Math.max(...curve));
  const offsetOf = (place) => place - (curve.length - 1) / 2;
  const rowsOf = (shares, group) => shares.map((y, place) => ({ x: offsetOf(place), y, group }));
  const label = `${offsetOf(peak) > 0 ? "+" : ""}${offsetOf(peak)}: ${short(curve[peak])}`.replace("-", "−");
  const rows = [...rowsOf(curve, "head"), ...rowsOf(atlas.equal, "")];
  const svg = drawChart({ kind: "line", rows, at: [offsetOf(peak), label] }, WIDTH);
  dress(svg, { role: "img", "aria-label": `attention of head ${name} by offset, the most at ${label}` });
  return element("div", {}, svg, element("p", { class: "hint" }, "Dashed: attention that favours no key."));
}

function numbersOf(place) {
  const known = atlas.measures.filter(({ values }) => values[place] !== null);
  const cells = known.map(({ title, unit, values, halves, equal, chance }) => {
    return [title, unit, values[place], halves[place] ?? null, equal, chance];
  });
  const shown = cells.map((row) => row.map((cell, at) => (at < 2 ? cell : cell === null ? "" : short(cell))));
  const headers = ["measure", "unit", "mean", "±", "equal share", "by chance ≤"];
  const columns = headers.map((header) => ({ header, unit: "" }));
  const numeric = columns.map((_, at) => at > 1);
  const title = "Numbers: mean over texts ± half of its 95 % interval";
  const facts = atlas.heads[place].facts.flatMap(([name, said]) => [element("dt", {}, name), element("dd", {}, said)]);
  return [element("dl", {}, ...facts), shownTable({ title, role: "facts", columns, numeric, rows: cells, shown })];
}
