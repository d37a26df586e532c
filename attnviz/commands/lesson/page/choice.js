// What is chosen, for the whole page: model, layer, head, query, key, step. Sections draw themselves when it changes.

import { chooser, write } from "../../../renderers/page/dom.js";
import { attend, findLargest } from "./arithmetic.js";
import { renew } from "./parts.js";
import { lesson, tokenText } from "./phrases.js";

export const positions = [...lesson.tokens.keys()];
export const queries = positions.slice(0, lesson.nQueries); // of an example the others are not given

// The row to begin with: of a head of places, the row that looks there most; of another, the sharpest.
function chooseQuery(head, pattern) {
  const [, far = 1, way] = /^(?:(\d+) )?(before|after|previous token|next token)$/.exec(pattern ?? "") ?? [];
  const step = way ? Number(far) * (["before", "previous token"].includes(way) ? -1 : 1) : null;
  const rows = queries.map((query) => attend(head, query).weights);
  const peaks = rows.map((row, query) => (step === null ? Math.max(...row) : (row[query + step] ?? 0)));
  return findLargest(peaks.map((peak, query) => (lesson.tokens[query].special ? 0 : peak)));
}

const last = lesson.models[0].layers.length - 1;
const begun = lesson.models[0].layers[last];
// A head that was found to look at one thing is the best to begin with.
const shares = (begun.known ?? []).map((each) => each?.[1] ?? 0);
const firstHead = Math.max(0, ...shares) > 0 ? findLargest(shares) : 0;

export const choice = {
  model: 0,
  layer: last,
  head: firstHead,
  query: chooseQuery(begun.heads[firstHead], begun.known?.[firstHead]?.[0]),
  key: 0,
  step: 0,
  temperature: 1,
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

export const chosenHead = () => chosenLayer().heads[choice.head];

// Of one query, the chosen one unless another is named, as the divisor is set.
export const attendChosen = (query = choice.query) => attend(chosenHead(), query, choice);

const OPTIONS = {
  model: () => lesson.models.map((each) => each.name),
  layer: () => chosenModel().layers.map((each) => String(each.number)),
  head: () => [...Array(chosenModel().nHeads).keys()].map(String),
  query: () => queries.map(tokenText),
  key: () => positions.map(tokenText),
};

choice.key = findLargest(attendChosen().weights);

// Selects that follow what is chosen elsewhere, too. One that has nothing to choose from is hidden.
export function drawChoosers(place) {
  onChange([...WHICH_ROW, "key"], () => {
    const made = Object.entries(OPTIONS).map(([name, list]) => {
      const options = list().map((text, at) => [at, text]);
      const label = chooser(write(`choose.${name}`), options, choice[name], (value) => change({ [name]: value }));
      label.querySelector("select").dataset.choice = name;
      label.hidden = options.length < 2;
      return label;
    });
    renew(place, made);
  });
}
