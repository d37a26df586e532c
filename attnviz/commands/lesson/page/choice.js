// What is chosen, for the whole page: model, layer, head, query, key, step. Sections draw themselves when it changes.

import { chooser, element } from "../../../renderers/page/dom.js";
import { attend, findLargest, unpackHeads } from "./arithmetic.js";
import { lesson, paragraph, tokenText, write } from "./phrases.js";

const nTokens = lesson.tokens.length;
const heads = new Map();

// Of a layer of a model, by its place among those that the page has.
export function headsOf(model, layer) {
  const place = `${model} ${layer}`;
  const of = lesson.models[model];
  if (!heads.has(place)) heads.set(place, unpackHeads(of.layers[layer], of.nHeads, nTokens));
  return heads.get(place);
}

// A head that was found to look at one thing is the best to begin with.
function chooseHead(layer) {
  const shares = (layer.known ?? []).map((each) => each?.[1] ?? 0);
  return Math.max(0, ...shares) > 0 ? findLargest(shares) : 0;
}

const last = lesson.models[0].layers.length - 1;

export const choice = {
  model: 0,
  layer: last,
  head: chooseHead(lesson.models[0].layers[last]),
  query: Math.floor((nTokens - 1) / 2),
  key: 0,
  step: 0,
  causal: false,
  temperature: 1,
  noise: 0,
  offLayer: last,
  off: 0,
};
const sections = [];

export const WHICH_ROW = ["model", "layer", "head", "query"];

// Draws now, and whenever one of these is chosen anew: what did not change is not read aloud again.
export function onChange(names, draw) {
  sections.push({ names, draw });
  draw();
}

export function change(news) {
  const before = { ...choice };
  Object.assign(choice, news);
  const model = lesson.models[choice.model];
  choice.layer = Math.min(choice.layer, model.layers.length - 1);
  choice.head = Math.min(choice.head, model.nHeads - 1);
  const changed = new Set(Object.keys(choice).filter((name) => choice[name] !== before[name]));
  for (const { names, draw } of sections) if (names.some((name) => changed.has(name))) draw();
}

export const chosenModel = () => lesson.models[choice.model];

export const chosenLayer = () => chosenModel().layers[choice.layer];

export const chosenHead = () => headsOf(choice.model, choice.layer)[choice.head];

export function attendChosen(options = {}) {
  return attend(chosenHead(), choice.query, { causal: choice.causal, ...options });
}

const numbered = (many) => [...Array(many).keys()].map((each) => [each, String(each)]);

const OPTIONS = {
  model: () => lesson.models.map((each, at) => [at, each.name]),
  layer: () => chosenModel().layers.map((each, at) => [at, String(each.number)]),
  head: () => numbered(chosenModel().nHeads),
  query: () => lesson.tokens.map((_, at) => [at, tokenText(at)]),
};

choice.key = findLargest(attendChosen().weights);

// Selects that follow what is chosen elsewhere, too. One that has nothing to choose from is left out.
export function choosers(...names) {
  const place = element("div", { class: "choosers" });
  const shown = names.filter((name) => name === "query" || lesson.models.some((_, at) => countOptions(name, at) > 1));
  let drawn = "";
  onChange(WHICH_ROW, () => {
    const options = shown.map((name) => OPTIONS[name]());
    if (JSON.stringify(options) !== drawn) {
      drawn = JSON.stringify(options);
      const made = shown.map((name, at) =>
        chooser(write(`choose.${name}`), options[at], choice[name], (value) => change({ [name]: value })),
      );
      place.replaceChildren(...made);
    }
    for (const [at, select] of [...place.querySelectorAll("select")].entries()) {
      select.selectedIndex = choice[shown[at]];
      select.dataset.choice = shown[at];
    }
  });
  return place;
}

function countOptions(name, at) {
  const model = lesson.models[at];
  return { model: lesson.models.length, layer: model.layers.length, head: model.nHeads }[name];
}

// Where a mask changes what is shown, and was chosen elsewhere.
export function maskNote() {
  const note = paragraph("page.masked", {}, { class: "warning" });
  onChange(["causal"], () => {
    note.hidden = !choice.causal;
  });
  return note;
}
