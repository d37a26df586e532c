// A box that finds heads, by their place, by what they look at in this text or by what they are known for, or a word.
import { chipsOfHeads, nothingFound, strengthOf } from "./chips.js";
import { hasQueries, isLayered, maps, nameIn, rowsOf } from "./content.js";
import { byId, content, element, write } from "./dom.js";
import { nameOfRow } from "./readout.js";
import { looksIn } from "./sorting.js";
import { change, goTo, mapOf, pictureOf, state } from "./state.js";

const MOST_OFFERED = 1000; // words

export function finder() {
  const [heads, words] = [headsToFind(), wordsToFind()];
  if (!heads.length && !words.length) return "";
  const known = heads.length
    ? [...Object.keys(pictureOf().looks), ...heads.map((head) => head.known).filter(Boolean)]
    : [];
  const places = [...heads, ...(words.length > MOST_OFFERED ? [] : words)].map(({ name }) => name);
  const offered = [...new Set([...known, ...places])].map((value) => element("option", { value }));
  const ofWord = words.length && state.query !== null ? nameOfRow(mapOf(), state.query) : "";
  const box = element("input", {
    type: "search",
    id: "find",
    list: "findable",
    placeholder: [heads.length && write("ui.a_head"), words.length && write("ui.a_word")].filter(Boolean).join(" / "),
    value: state.find || ofWord,
    onchange: ({ target }) => find(target.value.trim(), heads, words),
  });
  if (state.find) showFound(state.find, heads);
  const list = element("datalist", { id: "findable" }, ...offered);
  return element("label", { class: "chooser" }, element("span", {}, write("ui.find")), box, list);
}

function headsToFind() {
  const picture = pictureOf();
  if (!isLayered(picture) || picture.maps.length < 2) return [];
  return picture.maps.map((number, at) => {
    const { layer, head } = maps[number];
    const known = nameIn(picture, at);
    return { number, place: `${layer}.${head}`, known, name: `${layer}.${head} ${known}`.trim() };
  });
}

function wordsToFind() {
  const map = mapOf();
  if (!hasQueries(map)) return [];
  const tokens = map.factors ? content.factored.tokens[map.factors.rows] : null; // of blocks, all that are in them
  if (tokens) return tokens.map((word, at) => ({ query: Math.floor(at / map.block), word, name: `${at} ${word}` }));
  return rowsOf(map).labels.map((word, query) => ({ query, word, name: nameOfRow(map, query) }));
}

// The whole name of either, else a head's place, a word, what heads look at or are known for, or a part of a word.
function find(asked, heads, words) {
  const text = asked.toLowerCase();
  if (!text) return change({ query: null, key: null, find: "" }, true);
  const same = (...names) => names.some((name) => name.toLowerCase() === text);
  const head = heads.find(({ name, place }) =>
    same(name, place, place.replace(".", " "), `layer ${place.replace(".", ", head ")}`),
  );
  if (head) return goToHead(head, "");
  const word = words.find(({ name, word }) => same(name, word));
  if (word) return goToWord(word);
  const { inText, byCard } = headsCalled(text, heads);
  const [best] = [...inText, ...byCard];
  if (best) return goToHead(best, asked);
  const part = words.find(({ word }) => word.toLowerCase().includes(text));
  return part ? goToWord(part) : change({ find: asked }, true);
}

// Heads that look in this text at what is called so, and others that are known for it, each the strongest first.
function headsCalled(text, heads) {
  const picture = pictureOf();
  const inText = looksIn(picture)
    .filter(({ name }) => name.toLowerCase().includes(text))
    .sort((a, b) => b.share - a.share)
    .filter(({ at }, rank, all) => all.findIndex((other) => other.at === at) === rank)
    .map(({ at, name, share }) => ({ ...heads[at], why: whyFound(text, name, share.toFixed(2)) }));
  const byCard = heads
    .map((head, at) => ({ ...head, why: whyFound(text, head.known, picture.strengths?.[at] ?? "") }))
    .filter(({ number, known }) => known.toLowerCase().includes(text) && inText.every((one) => one.number !== number))
    .sort((a, b) => strengthOf(b.why) - strengthOf(a.why));
  return { inText, byCard };
}

const whyFound = (text, name, strength) => (name.toLowerCase() === text ? strength : `${name} ${strength}`.trim());

function showFound(asked, heads) {
  const { inText, byCard } = headsCalled(asked.toLowerCase(), heads);
  const chips = (about, found) =>
    found.length ? [element("span", { class: "hint" }, about), ...chipsOfHeads(found.map(asChip))] : [];
  const asChip = (head) => ({
    name: head.place,
    why: head.why,
    isChosen: state.view === "matrix" && head.number === state.map,
    choose: () => goToHead(head, asked),
  });
  const shown = [...chips(write("ui.in_text"), inText), ...chips(write("ui.by_card"), byCard)];
  const wanted = write(heads.length ? "ui.wanted" : "ui.a_word");
  byId("found").replaceChildren(...(shown.length ? shown : [nothingFound(asked, wanted)]));
}

const goToHead = ({ number }, asked) => goTo(number, { view: "matrix", find: asked });

function goToWord({ query }) {
  const other = content.screen.length ? "screen" : "matrix";
  change({ view: state.view === "overview" ? other : state.view, query, key: null, find: "" }, true);
}
