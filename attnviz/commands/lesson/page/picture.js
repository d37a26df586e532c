// One query at work, as one drawing: words, their q, k and v, the map with the query's row, the weighted sum, the answer.
// Buttons and arrow keys move through it, and light up one thing at a time.

import { button, byId, drawing, element, nextFrame, roving, say, write } from "../../../renderers/page/dom.js";
import {
  attendChosen,
  change,
  choice,
  chosenHead,
  chosenLayer,
  chosenModel,
  drawChoosers,
  onChange,
  positions,
  queries,
  WHICH_ROW,
} from "./choice.js";
import { drawMap } from "./heads.js";
import { DIGITS } from "./off.js";
import { decimal, factor, few, largestOf, MAX_WRITTEN, strip, vector } from "./parts.js";
import { lesson, token, tokenText } from "./phrases.js";

export const N_STEPS = lesson.models[0].answers ? 5 : 4;
const narrow = matchMedia("(max-width: 760px)");
const [GAP, TOP, HEIGHT, ANSWER] = [14, 34, 286, 46]; // that of one answer: there are three at most
const WIDTHS = { word: 124, score: 60, map: 244, weight: 112, answer: 130 };
const CELL = 30; // of a strip that has its numbers in it
// A strip of many components is a shape to look at, one of few is numbers to read.
const stripWidth = () => (chosenHead().size <= MAX_WRITTEN ? CELL * chosenHead().size : 58);
const widthOf = (name, size) => (name === "map" ? size.map : (WIDTHS[name] ?? stripWidth()));
// What each step lights up, and beside what on a narrow screen, which has no room for more.
const LIT = [["q", "k", "v"], ["k", "score"], ["map", "weight"], ["weighted"], ["answer"]];
const BESIDE = [["word"], ["word", "q"], ["word"], ["v", "weight"], ["weighted"]];

export function pictureSection() {
  const [steps, svg] = ["steps", "picture"].map(byId);
  const items = [...Array(N_STEPS).keys()].map((step) =>
    button(write(`see.s${step}`), () => change({ step }), { class: "button step" }),
  );
  steps.append(
    ...items,
    button(write("see.next"), () => change({ step: (choice.step + 1) % N_STEPS })),
  );
  roving(steps, ".step");
  steps.addEventListener("focusin", ({ target }) => {
    if (items.includes(target) && target.matches(":focus-visible")) change({ step: items.indexOf(target) });
  });
  svg.addEventListener("click", ({ target }) => {
    const chosen = target.closest("[data-at]");
    if (chosen) change({ [chosen.dataset.which]: Number(chosen.dataset.at) });
  });
  byId("own").addEventListener("click", () => change({ temperature: 1 }));
  drawChoosers(byId("which"));
  const draw = () => {
    const work = attendChosen();
    for (const [step, item] of items.entries()) item.ariaCurrent = step === choice.step ? "step" : null;
    byId("changed").hidden = choice.temperature === 1;
    const values = { query: token(choice.query), d: chosenHead().size, heads: chosenModel().nHeads };
    const said = say(`see.e${choice.step}`, values);
    if (choice.step === 0 && !chosenModel().projects) said.push(" ", ...say("see.bare"));
    if (choice.step === 1 && work.bias) said.push(" ", ...say("see.bias"));
    byId("said").replaceChildren(...said);
    svg.setAttribute("aria-label", write("see.picture", { step: items[choice.step].textContent }));
    drawPicture(svg, work);
    const lines = writeOut(work).map((line) => element("code", {}, line));
    byId("written").replaceChildren(...lines.map((line) => element("p", { class: "line" }, line)));
    const error = chosenLayer().weightsError?.toExponential(0);
    byId("checked").textContent = choice.step === 2 && error ? write("see.checked", { weights: error }) : "";
  };
  onChange([...WHICH_ROW, "key", "step", "temperature", "off", "offLayer"], draw);
  narrow.addEventListener("change", () => nextFrame(narrow, draw));
}

// One key at the step that is lit, with its numbers.
function writeOut(work) {
  const { key, query, step } = choice;
  const { keys, values, size } = chosenHead();
  const products = work.q.map((each, at) => `${factor(each)} × ${factor(keys[key][at])}`);
  const divisor = `${choice.temperature === 1 ? "" : `${decimal(choice.temperature, 2)} × `}√${size}`;
  const inside = work.shift ? `${decimal(work.scaled[key])} − ${factor(work.shift)}` : decimal(work.scaled[key]);
  return [
    [`q${query} = ${vector(work.q)}`, `k${key} = ${vector(keys[key])}`, `v${key} = ${vector(values[key])}`],
    [
      `q${query} · k${key} = ${few(products, " + ")} = ${decimal(work.scores[key])}`,
      `÷ ${divisor}${work.bias ? ` + ${factor(work.bias[key])}` : ""} = ${decimal(work.scaled[key])}`,
    ],
    [`a${key} = exp(${inside}) ÷ ${decimal(work.total)} = ${decimal(work.weights[key])}`],
    [`a${key} v${key} = ${decimal(work.weights[key])} × ${vector(values[key])}`, `o = Σ a v = ${vector(work.output)}`],
    [],
  ][step];
}

// --- the drawing -----------------------------------------------------------------------------------------------------

function drawPicture(svg, work) {
  const near = [...BESIDE[choice.step], ...LIT[choice.step]];
  const shown = Object.keys(COLUMNS).filter((name) =>
    narrow.matches ? near.includes(name) : name !== "answer" || lesson.models[0].answers,
  );
  const high = Math.min(40, Math.max(15, HEIGHT / positions.length));
  const size = { high, bottom: TOP + high * positions.length, map: narrow.matches ? 124 : WIDTHS.map };
  const places = {};
  let x = 0;
  const columns = shown.map((name) => {
    places[name] = x;
    x += widthOf(name, size) + GAP;
    const isLit = name === "word" || LIT[choice.step].includes(name);
    const title = drawing("text", { y: 16, class: "title" }, write(`see.c_${name}`));
    const place = { class: isLit ? "lit" : "dim", "data-column": name, transform: `translate(${places[name]} 0)` };
    return drawing("g", place, title, ...COLUMNS[name](work, size));
  });
  svg.setAttribute("viewBox", `0 0 ${x - GAP} ${Math.max(size.bottom + 34, TOP + 3 * ANSWER)}`);
  svg.style.maxWidth = `${x - GAP}px`;
  svg.replaceChildren(...drawLines(places, size), ...columns);
}

const middle = (at, { high }) => TOP + (at + 0.5) * high;

// What a step brings together: the query with each key, the weighted values in their sum.
function drawLines(places, size) {
  const curve = (x, y, toX, toY) =>
    drawing("path", { class: "line", d: `M${x} ${y}C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY} ${toX} ${toY}` });
  if (choice.step === 1) {
    const start = places.q + stripWidth();
    return positions.map((at) => curve(start, middle(choice.query, size), places.k, middle(at, size)));
  }
  if (choice.step !== 4) return [];
  return [curve(places.weighted + stripWidth(), size.bottom + 16, places.answer, TOP + 40)];
}

const embed = (made, y, width, height, of = {}) => drawing("foreignObject", { x: 0, y, width, height, ...of }, made);

const mark = (which, at) => ({
  "data-which": which,
  "data-at": at,
  class: at === choice[which] ? "chosen" : "other",
});

function strips(name, which, vectors, largest, { high }) {
  return vectors.map((each, at) =>
    embed(strip(`${name}${at}`, each, largest), TOP + at * high + 2, stripWidth(), high - 4, mark(which, at)),
  );
}

function numbers(values, x, size) {
  return values.map((value, at) => drawing("text", { x, y: middle(at, size) + 5, ...mark("key", at) }, decimal(value)));
}

// Queries and keys are compared, so one colour is as much in both.
const largestOfBoth = () => largestOf([chosenHead().queries, chosenHead().keys]);

const COLUMNS = {
  word: (_, size) =>
    positions.map((at) => {
      const chosen = at < queries.length ? mark("query", at) : {};
      return drawing("text", { y: middle(at, size) + 5, ...chosen }, shorten(tokenText(at)));
    }),
  q: (_, size) => strips("q", "query", chosenHead().queries.slice(0, queries.length), largestOfBoth(), size),
  k: (_, size) => strips("k", "key", chosenHead().keys, largestOfBoth(), size),
  v: (_, size) => strips("v", "key", chosenHead().values, largestOf(chosenHead().values), size),
  score: (work, size) => numbers(work.scaled, 4, size),
  map: (_, size) => {
    const rows = queries.map((query) => attendChosen(query).weights);
    const map = drawMap(rows, write("heads.head", { head: choice.head }));
    return [embed(map, TOP, size.map, size.high * queries.length)];
  },
  weight: (work, size) => [
    ...work.weights.map((weight, at) =>
      drawing("rect", { y: middle(at, size) - 5, height: 10, width: 60 * weight, ...mark("key", at) }),
    ),
    ...numbers(work.weights, 66, size),
  ],
  weighted: (work, size) => [
    ...strips("a v", "key", work.weighted, largestOf(chosenHead().values), size),
    drawing("path", { class: "rule", d: `M0 ${size.bottom + 3}H${stripWidth()}` }),
    embed(strip("o", work.output, largestOf(chosenHead().values)), size.bottom + 8, stripWidth(), 22),
  ],
  answer: () => {
    const { answers } = lesson.models[0];
    const now = answers.layers[choice.offLayer][choice.off];
    return answers.labels.flatMap((label, at) => [
      drawing("text", { y: TOP + 14 + at * ANSWER }, shorten(label)),
      drawing("rect", { y: TOP + 20 + at * ANSWER, height: 10, width: 72 * now[at] }),
      drawing("text", { x: 76, y: TOP + 30 + at * ANSWER }, decimal(now[at], DIGITS)),
    ]);
  },
};

// By signs, of which some are two halves.
const shorten = (text) => ([...text].length > 16 ? `${[...text].slice(0, 15).join("")}…` : text);
