// A box that goes to a head, to all heads in the order of what they look at, or to a word.
import { maps, nameIn, nameOfRow, rowsOf } from "./content.js";
import { byId, content, element, write } from "./dom.js";
import { change, goTo, mapOf, pictureOf, state } from "./state.js";

const MOST_OFFERED = 1000; // names that the box lists

export function finder() {
  const goals = [...headsToFind(), ...wordsToFind()];
  if (!goals.length) return "";
  const offered = goals.slice(0, MOST_OFFERED).map(({ names: [value] }) => element("option", { value }));
  const box = element("input", {
    type: "search",
    id: "find",
    list: "findable",
    placeholder: write("ui.wanted"),
    onchange: ({ target }) => find(target.value.trim(), goals),
  });
  const list = element("datalist", { id: "findable" }, ...offered);
  return element("label", { class: "chooser" }, element("span", {}, write("ui.find")), box, list);
}

// Each with the names that it goes by, of which the first is whole, and what shows it.
function headsToFind() {
  const picture = pictureOf();
  if (picture.maps.length < 2 || picture.maps.some((number) => maps[number].layer === null)) return [];
  const looks = Object.keys(picture.looks).map((look) => ({
    names: [look],
    go: () => change({ view: "overview", sort: look }, true),
  }));
  const heads = picture.maps.map((number, at) => {
    const [place, known] = [`${maps[number].layer}.${maps[number].head}`, nameIn(picture, at)];
    return { names: [`${place} ${known}`.trim(), place, known], go: () => goTo(number, { view: "matrix" }) };
  });
  return [...looks, ...heads];
}

function wordsToFind() {
  const map = mapOf();
  if (!map.has_queries) return [];
  const other = content.screen.length ? "screen" : "matrix";
  const view = state.view === "overview" ? other : state.view;
  const goal = (names, query) => ({ names, go: () => change({ view, query, key: null }, true) });
  const tokens = map.factors ? content.factored.tokens[map.factors.rows] : null; // of blocks, all that are in them
  if (tokens) return tokens.map((word, at) => goal([`${at} ${word}`, word], Math.floor(at / map.block)));
  return rowsOf(map).labels.map((word, query) => goal([nameOfRow(map, query), word], query));
}

// A whole name of any, else a part of one, of heads before words.
function find(asked, goals) {
  const text = asked.toLowerCase();
  if (!text) return;
  const called = (isIt) => goals.find(({ names }) => names.some((name) => isIt(name.toLowerCase())));
  const goal = called((name) => name === text) ?? called((name) => name.includes(text));
  if (goal) goal.go();
  else byId("found").replaceChildren(write("ui.nothing_found", { asked }));
}
