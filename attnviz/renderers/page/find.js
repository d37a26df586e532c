// A box that finds a head, by its place or by what it is known for, or a word of the text.
import { hasQueries, isLayered, maps, nameIn, rowsOf } from "./content.js";
import { byId, element } from "./dom.js";
import { canBeLit } from "./overview.js";
import { nameOfRow } from "./readout.js";
import { change, mapIn, mapOf, pictureOf, state } from "./state.js";

const MOST_OFFERED = 1000; // words

export function finder() {
  const [heads, words] = [headsToFind(), wordsToFind()];
  if (!heads.length && !words.length) return "";
  const offered = [...heads, ...(words.length > MOST_OFFERED ? [] : words)];
  const list = element("datalist", { id: "found" }, ...offered.map(({ name }) => element("option", { value: name })));
  const value = words.length && state.query !== null ? nameOfRow(mapOf(), state.query) : "";
  const box = element("input", {
    type: "search",
    id: "find",
    list: "found",
    placeholder: heads.length ? (words.length ? "head or word" : "head") : "word",
    value,
    onchange: ({ target }) => find(target.value.trim().toLowerCase(), heads, words),
  });
  return element("label", { class: "chooser" }, element("span", {}, "Find"), box, list);
}

function headsToFind() {
  const picture = pictureOf();
  if (!isLayered(picture) || picture.maps.length < 2) return [];
  return picture.maps.map((number, place) => {
    const { layer, head } = maps[number];
    const known = nameIn(picture, place);
    return { number, place: `${layer}.${head}`, known, name: `${layer}.${head} ${known}`.trim() };
  });
}

function wordsToFind() {
  const map = mapOf();
  if (!hasQueries(map)) return [];
  return rowsOf(map).labels.map((word, query) => ({ query, word, name: nameOfRow(map, query) }));
}

// The whole name of either, else a head's place, a word, what heads are known for, or a part of a word; the first.
function find(text, heads, words) {
  if (!text) return change({ query: null, key: null }, true);
  const same = (...names) => names.some((name) => name.toLowerCase() === text);
  const head = heads.find(({ name, place }) =>
    same(name, place, place.replace(".", " "), `layer ${place.replace(".", ", head ")}`),
  );
  const word = words.find(({ name, word }) => same(name, word));
  if (!head && word) return goToWord(word);
  const known = head ?? heads.find(({ known }) => known.toLowerCase().includes(text));
  if (known) return goToHead(known);
  const part = words.find(({ word }) => word.toLowerCase().includes(text));
  if (part) return goToWord(part);
  byId("status").textContent =
    `No ${[heads.length && "head", words.length && "word"].filter(Boolean).join(" and no ")} is called so.`;
  return undefined;
}

function goToHead({ number }) {
  const view = state.view === "overview" ? "matrix" : state.view;
  const alike = maps[number].rows === maps[state.map].rows && mapIn(view, number).rows === mapOf().rows;
  change({ view, map: number, heads: [number], window: null, ...(alike ? {} : { query: null, key: null }) }, true);
}

// Small maps show where a word is, if there are not too many.
function goToWord({ query }) {
  const view = state.view === "overview" && !canBeLit(mapOf()) ? "matrix" : state.view;
  change({ view, query, key: null }, true);
}
