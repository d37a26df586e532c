// One head of an atlas: what it is called, attention by offset, words, moments as text, and its numbers.
import { atlas, short, unnamed } from "./atlas-data.js";
import { axisOf, ruleOf, textOf } from "./atlas-plot.js";
import { placeOf } from "./colour.js";
import { copyButton, drawing, element, isolated } from "./dom.js";
import { directionOf, tint } from "./writing.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM] = [360, 138, 42, 16, 22]; // pixels of the curve, and of the room around it
const STORED = 2; // digits of a weight that the page holds
const TELLING = 2; // equal shares, from which on a number is among the first
export const SHADES = { is_logarithmic: true, is_multiple: true, low: 1, high: 16, is_signed: false };

export function headCard(place, buttons) {
  const head = atlas.heads[place];
  const title = element("h2", { id: `head-${place}` }, `Head ${head.name}`);
  const said = element("span", { class: "hint" }, `layer ${head.layer}, head ${head.head}`);
  const names = head.names.map(([pattern, strength]) =>
    element("li", {}, element("b", { class: "badge" }, atlas.letters[pattern]), ` ${pattern} ${strength}`),
  );
  const kinds = [false, true].map((isRandom) => head.moments.filter((moment) => moment.isRandom === isRandom));
  return element(
    "article",
    { class: "card", "aria-labelledby": `head-${place}` },
    element("header", {}, title, said, ...buttons),
    names.length
      ? element("ul", { class: "names" }, ...names)
      : element("p", { class: "hint" }, unnamed("no single pattern")),
    ...(head.words.length ? [wordsOf(head)] : []),
    ...momentsOf("Strongest moments", "where one key takes most beyond an equal share; one of a text", kinds[0], 3),
    ...momentsOf("Random moments", "what it does all day; the same ones for every head", kinds[1], 3),
    element("h3", {}, "Attention by offset from the query"),
    curveOf(head),
    ...numbersOf(place),
  );
}

function wordsOf({ words }) {
  const each = words.map(([word, lift, support]) =>
    element("li", {}, isolated(word), element("span", { class: "hint" }, ` ${short(lift)} × (${support})`)),
  );
  const about = element("span", { class: "hint" }, " × an equal share (times in the texts)");
  return element(
    "section",
    {},
    element("h3", {}, "Words attended to", about),
    element("ul", { class: "said" }, ...each),
  );
}

// The first ones at once, the others when they are asked for.
function momentsOf(title, about, moments, nFirst) {
  if (!moments.length) return [];
  const shown = (some) => some.map(momentOf);
  const parts = [
    element("h3", {}, title, element("span", { class: "hint" }, ` ${about}`)),
    ...shown(moments.slice(0, nFirst)),
  ];
  const others = moments.slice(nFirst);
  if (!others.length) return parts;
  const details = element("details", {}, element("summary", {}, `${others.length} more`));
  details.addEventListener("toggle", () => details.children.length === 1 && details.append(...shown(others)));
  return [...parts, details];
}

function momentOf(moment) {
  const { text, query, keys, multiples, nKeys, first, effective } = moment;
  const labels = keys.map((key) => text.tokens.get(key) ?? "");
  const words = element("p", {
    class: "moment",
    dir: directionOf(
      labels,
      labels.map(() => false),
    ),
  });
  for (const [place, key] of keys.entries()) {
    if (place ? key > keys[place - 1] + 1 : key > 0) words.append(" … ");
    const [label, multiple] = [labels[place], multiples[place]];
    if (label.startsWith(" ")) words.append(" ");
    const word = element("span", { class: key === query ? "word query" : "word" }, isolated(label.trimStart()));
    word.title = `${key} ${label.trimStart()}: ${short(multiple / nKeys, STORED)}, ${short(multiple, STORED)} × an equal share`;
    if (multiple > 1) word.style.backgroundColor = tint(placeOf(multiple, SHADES));
    words.append(word);
  }
  const best = multiples.indexOf(Math.max(...multiples.map((multiple, place) => (keys[place] ? multiple : -1))));
  const share = multiples[best] / nKeys;
  const most = [
    `${keys[best]} “`,
    isolated(labels[best].trim()),
    `” ${short(share, STORED)} (${short(multiples[best], STORED)} ×)`,
  ];
  const ofFirst = `first token ${short(first)}`;
  const numbers = first > share ? [`${ofFirst}, then `, ...most] : ["most to ", ...most, ` · ${ofFirst}`];
  const where = `${text.title}, token ${query} · `;
  const about = element("p", { class: "hint" }, where, ...numbers, ` · ${short(effective)} effective keys`);
  return element("div", { class: "of-moment" }, words, about, ...commandsOf(moment, about));
}

// Commands stand below a moment once they are asked for.
function commandsOf({ text, query }, about) {
  const asked = atlas.commands.filter(([, command]) => command.includes("{query}") && text.options);
  if (!asked.length) return [];
  const place = element("div", { hidden: true });
  const button = element("button", { type: "button", class: "plain", "aria-expanded": false }, "draw this");
  button.addEventListener("click", () => {
    const name = atlas.heads[Number(button.closest("[data-head]").dataset.head)].name;
    const filled = { "{options}": text.options, "{head}": name, "{query}": String(query) };
    const lines = asked.map(([title, command]) =>
      commandLine(
        title,
        command.replace(/\{(options|head|query)\}/g, (part) => filled[part]),
      ),
    );
    place.replaceChildren(...lines);
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", !place.hidden);
  });
  about.append(" · ", button);
  return [place];
}

export function commandLine(title, command) {
  const copy = copyButton("Copy", `copy the command: ${title}`, () => command);
  return element("div", { class: "tools" }, `${title}: `, element("code", { tabindex: 0 }, command), copy);
}

// Shares by offset, against what attention gives that favours no key; the largest is labelled.
function curveOf({ curve, name }) {
  const reach = (curve.length - 1) / 2;
  const peak = curve.indexOf(Math.max(...curve));
  const offset = peak - reach;
  const svg = drawing("svg", { class: "curve", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const label = `${offset > 0 ? "+" : ""}${offset}: ${short(curve[peak])}`.replace("-", "−");
  svg.setAttribute("aria-label", `attention of head ${name} by offset, the most at ${label}`);
  const up = axisOf([0, ...curve, ...atlas.equal], HEIGHT - BOTTOM, 20);
  const across = (place) => LEFT + ((WIDTH - LEFT - RIGHT) * place) / (curve.length - 1);
  const path = (values) =>
    values.map((value, place) => `${place ? "L" : "M"}${across(place).toFixed(1)} ${up.place(value).toFixed(1)}`);
  for (const value of up.ticks) {
    svg.append(
      ruleOf(LEFT, up.place(value), WIDTH - RIGHT, up.place(value)),
      textOf(LEFT - 5, up.place(value) + 4, short(value), "end"),
    );
  }
  for (const at of [-reach, -reach / 2, 0, reach / 2, reach]) {
    svg.append(textOf(across(at + reach), HEIGHT - 6, `${at > 0 ? "+" : ""}${at}`.replace("-", "−"), "middle"));
  }
  svg.append(drawing("path", { class: "equal", d: path(atlas.equal).join("") }));
  svg.append(drawing("path", { class: "shares", d: path(curve).join("") }));
  svg.append(drawing("circle", { class: "peak", cx: across(peak), cy: up.place(curve[peak]), r: 3.5 }));
  const side = peak > curve.length / 2 ? "end" : "start";
  svg.append(textOf(across(peak) + (side === "end" ? -4 : 4), up.place(curve[peak]) - 6, label, side, "said"));
  return element("div", {}, svg, element("p", { class: "hint" }, "Dashed: attention that favours no key."));
}

// What stands out first, all of it when it is asked for.
function numbersOf(place) {
  const rows = atlas.measures.map((measure) => ({
    ...measure,
    value: measure.values[place],
    half: measure.halves[place] ?? null,
  }));
  const known = rows.filter(({ value }) => value !== null);
  const stands = ({ value, equal, chance }) =>
    equal === null ? chance === null || value > chance : value > 0 && value >= TELLING * equal;
  const [first, others] = [known.filter(stands), known.filter((row) => !stands(row))];
  const facts = atlas.heads[place].facts.flatMap(([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, value),
  ]);
  return [
    element("h3", {}, "Numbers", element("span", { class: "hint" }, " mean over texts ± half of its 95 % interval")),
    ...(facts.length ? [element("dl", {}, ...facts)] : []),
    numberTable(first),
    ...(others.length
      ? [element("details", {}, element("summary", {}, "The other measures"), numberTable(others))]
      : []),
  ];
}

function numberTable(rows) {
  const heads = ["measure", "mean", "equal share", "by chance ≤"].map((text) => element("th", { scope: "col" }, text));
  const lines = rows.map(({ title, unit, about, value, half, equal, chance }) => {
    const mean = half === null ? short(value) : `${short(value)} ± ${short(half)}`;
    const cells = [mean, equal === null ? "" : short(equal), chance === null ? "" : short(chance)];
    const name = element("th", { scope: "row", title: about }, title, element("span", { class: "hint" }, ` ${unit}`));
    return element("tr", {}, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
  });
  const [head, body] = [element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines)];
  const around = { class: "wide", tabindex: 0 };
  return element("div", around, element("table", { class: "numbers" }, head, body));
}
