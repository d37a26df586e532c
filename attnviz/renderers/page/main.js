// The page: which view is on it, what chooses its map, and when it is drawn anew.
import { columnsOf, hasText, maps, nameOfRow, pictures, rowsOf } from "./content.js";
import { button, byId, chooser, content, copyButton, element, isolated, loadFonts, roving, write } from "./dom.js";
import { change, goTo, listen, makers, mapOf, orderOf, pictureOf, scaleOf, state, VIEWS } from "./state.js";

const OF_ALL = ["atlas", "graph", "charts", "table"]; // views that show whatever there is, so that nothing is to be chosen
let shown = null;

// A box that goes to a head, to all heads in the order of what they look at, or to a word.
function finder() {
  const kinds = [...headsToFind(), wordsToFind()];
  const goals = kinds.flat();
  if (!goals.length) return "";
  const box = element("input", {
    type: "search",
    id: "find",
    placeholder: kinds.flatMap(([first]) => first?.names.at(-1) ?? []).join(", "), // one of each
    onchange: ({ target }) => find(target.value.trim(), goals),
  });
  return element("label", { class: "chooser" }, element("span", {}, write("ui.find")), box);
}

// Each with the names that it goes by, of which the first is whole, and what shows it.
function headsToFind() {
  const picture = pictureOf();
  if (picture.maps.length < 2 || picture.maps.some((number) => maps[number].layer === null)) return [[], []];
  const looks = Object.keys(picture.looks).map((look) => ({
    names: [look],
    go: () => change({ view: "overview", sort: look }, true),
  }));
  const heads = picture.maps.map((number, at) => {
    const [place, known] = [`${maps[number].layer}.${maps[number].head}`, picture.names[at]];
    return { names: [`${place} ${known}`.trim(), known, place], go: () => goTo(number, { view: "matrix" }) };
  });
  return [looks, heads];
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

function showTabs() {
  const tabs = VIEWS.map(([name]) => {
    const chosen = name === state.view;
    const attributes = { role: "tab", id: `tab-${name}`, "aria-selected": chosen, tabindex: chosen ? 0 : -1 };
    const said = write(name === "matrix" && !hasText(mapOf(), scaleOf()) ? "ui.map" : `ui.view_${name}`);
    const title = (name === "graph" && content.graph.title) || said;
    return button(title, () => change({ view: name }, true), attributes);
  });
  const focused = byId("views").contains(document.activeElement);
  byId("views").replaceChildren(...tabs);
  byId("views").hidden = tabs.length < 2;
  if (focused) byId(`tab-${state.view}`).focus();
  byId("view").setAttribute("aria-labelledby", `tab-${state.view}`);
}

function showChoosers() {
  const place = byId("choosers");
  const focused = [...place.querySelectorAll("select, input")].indexOf(document.activeElement);
  for (const each of [place, byId("found")]) each.replaceChildren();
  if (OF_ALL.includes(state.view)) return;
  if (pictures.length > 1) {
    const options = pictures.map(({ title }, number) => [number, title]);
    const go = (picture) => change({ picture, map: pictures[picture].maps[0], query: null, key: null }, true);
    place.append(chooser(write("ui.picture"), options, state.picture, go));
  }
  if (state.view === "matrix" && pictureOf().maps.length > 1) {
    const titleOf = (number, at) => `${maps[number].title} ${pictureOf().names[at]}`.trim();
    const options = pictureOf().maps.map((number, at) => [number, titleOf(number, at)]);
    place.append(chooser(write("ui.map"), options, state.map, goTo));
  }
  if (!pictureOf().scale && content.scales.length > 1) {
    const options = content.scales.map(({ kind }) => [kind, write(`ui.scale_${kind}`)]);
    place.append(chooser(write("ui.scale"), options, scaleOf().kind, (scale) => change({ scale }, true)));
  }
  const take = ({ target }) => change({ digits: target.checked ? "all" : "three" }, true);
  const box = element("input", { type: "checkbox", checked: state.digits === "all", onchange: take });
  place.append(element("label", { class: "chooser" }, box, element("span", {}, write("ui.full_precision"))));
  place.append(finder());
  place.querySelectorAll("select, input")[focused]?.focus();
}

function show(again) {
  if (again) makeView();
  byId("tools").replaceChildren(commandToCopy());
  shown.mark();
}

function makeView() {
  document.querySelector("main").dataset.view = state.view;
  showTabs();
  showChoosers();
  const panel = element("div");
  const isScreen = state.view === "screen"; // on which the rest is asked for
  byId("more").firstElementChild.hidden = !isScreen;
  if (!(isScreen && shown?.isScreen)) byId("more").open = !isScreen;
  document.querySelector("aside").prepend(byId("readout"), byId("legend"));
  const wasInside = byId("view").contains(document.activeElement) && document.activeElement;
  delete byId("view").dataset.ready;
  byId("status").textContent = "";
  byId("view").replaceChildren(panel);
  for (const name of ["legend", "beside"]) byId(name).replaceChildren();
  shown = makers[state.view](panel);
  byId("legend").replaceChildren(shown.legend());
  byId("view").dataset.ready = state.view;
  if (wasInside) (byId(wasInside.id) ?? byId("view")).focus();
}

function redraw() {
  if (!shown || !byId("view").clientWidth) return; // a window that is being changed may have no width for a moment
  shown.draw();
  byId("legend").replaceChildren(shown.legend());
}

// The command that draws what is seen as a file, to copy: what the report was drawn with, and what was chosen since. It
// stands only where `attnviz render` draws the same.
function commandToCopy() {
  const heads = chosenHeads();
  if (!content.render || !heads) return ""; // of what is no head of a record
  const { record, options, heads: ofReport } = content.render;
  const isSorted = state.view === "overview" && orderOf(pictureOf()).by !== null;
  const isAll = heads.length === maps.filter(({ layer }) => layer !== null).length;
  const chosen = [isAll && !isSorted ? ofReport : `--pick ${heads.join(",")}`];
  if (scaleOf().kind !== "lift") chosen.push(`--scale ${scaleOf().kind}`);
  if (state.view !== "overview") chosen.push(...partOfMap());
  const command = ["attnviz render", record, options, ...chosen].filter(Boolean).join(" ");
  const code = element("code", { tabindex: 0, id: "command" }, command);
  const copy = copyButton(write("ui.copy"), write("ui.copy_command"), () => command);
  return element("div", { class: "tools" }, write("ui.as_file"), code, copy);
}

// As layer.head, or nothing where a map that is seen is of no single head.
function chosenHeads() {
  const order = () => orderOf(pictureOf()).order.map((place) => maps[pictureOf().maps[place]]);
  const found = { overview: order, matrix: () => [mapOf()] }[state.view]?.();
  return found?.every(({ layer }) => layer !== null) ? found.map(({ layer, head }) => `${layer}.${head}`) : null;
}

// Of a map the row of the chosen query, or the column of the chosen key.
function partOfMap() {
  const { query, key } = state;
  const isKey = key !== null && (query === null || state.side === "to");
  if (!isKey && query === null) return [];
  const { positions } = isKey ? columnsOf(mapOf()) : rowsOf(mapOf());
  // The first and the last token of a place, which may stand for a block of them.
  const [first, last = first] = positions[isKey ? key : query].split("–").map(Number);
  if (isKey) return [`--key ${first}:${last + 1}`];
  return [`--query ${first === last ? first : `${first}:${last + 1}`}`];
}

// How to read the page, how exact its numbers are, and where they come from: closed until asked for.
function about() {
  const section = (title, ...inner) => element("section", {}, element("h2", {}, title), ...inner);
  const said = (sentences) => sentences.map((sentence) => element("p", {}, sentence));
  const notes = content.notes.map((note) => element("li", { dir: "auto" }, note));
  const facts = content.facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, isolated(value))]);
  const whole = element("details", {}, element("summary", {}, write("ui.about")));
  if (content.reading.length) whole.append(section(write("ui.reading"), ...said(content.reading)));
  if (notes.length) whole.append(section(write("ui.notes"), element("ul", {}, ...notes)));
  if (content.exactness.length) whole.append(section(write("ui.exactness"), ...said(content.exactness)));
  if (facts.length) whole.append(section(write("ui.facts"), element("dl", {}, ...facts)));
  return whole;
}

function start() {
  // A frame is as high as its page: else a notebook would scroll and the page in it, too.
  const tell = () => parent.postMessage({ attnviz: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
  if (parent !== window) new ResizeObserver(tell).observe(document.body);
  for (const name of ["title", "subtitle"]) byId(name).append(isolated(content[name]));
  byId("subtitle").after(...content.leads.map((said) => element("p", { dir: "auto" }, said.replaceAll(" %", "\xa0%"))));
  byId("about").append(about());
  byId("more").hidden = !VIEWS.length;
  if (!VIEWS.length) return; // what stands above says why there is nothing to see
  roving(byId("views"), "[role=tab]");
  listen(show);
  show(true);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) redraw();
    width = innerWidth;
  });
  matchMedia("print").addEventListener("change", redraw); // paper is white, whatever the screen is
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(true));
}

await loadFonts();
start();
