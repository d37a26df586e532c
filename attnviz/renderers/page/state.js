// Which view of which map is shown, in which order maps are, and what is chosen there: as one object, and as a link.
import { columnsOf, lineOfHead, maps, pictures, rowsOf } from "./content.js";
import { content } from "./dom.js";

// Those that the page has something to show in.
export const VIEWS = [
  ["atlas", content.atlas],
  ["graph", content.graph],
  ["screen", content.screen?.length],
  ["overview", pictures.some((picture) => picture.maps.length > 1)],
  ["matrix", maps.length],
  ["charts", content.charts.length],
  ["table", content.tables.length],
].filter(([, isThere]) => isThere);
const PAUSE = 150; // milliseconds: browsers refuse a page that writes its address too often

// What is shown is one object, and in words it is the part of the address behind #. So a link shows whoever opens it
// the view that it was copied from. Places in `state` count what is shown; in links tokens have their positions in the
// text, and maps their layers and heads, which another page of the same model has, too.
export const state = { view: "", picture: 0, map: 0, query: null, key: null };

// What a link says as it is, each with what it is where a link says nothing. Views add what they have of their own.
export const plain = {
  scale: "", // its kind; nothing: the report's
  sort: "", // by what an overview is: a column of the table of heads, or what heads look at; nothing: by place
  digits: "three", // of numbers; or "all": as they are stored
  side: "from", // of the chosen word: what it attends to, or with "to" what attends to it
};

// What makes the views, by their names, and the context of a long text: a module that the page has puts its own in.
export const makers = {};
let listener = () => {};
let writing = 0;

export const pictureOf = () => pictures[state.picture];
export const mapOf = () => maps[state.map];

// The picture's own scale, else the one that is chosen, else the report's.
export function scaleOf(picture = pictureOf()) {
  return picture.scale ?? content.scales.find((each) => each.kind === state.scale) ?? content.scales[0];
}

export function listen(heard) {
  listener = heard;
  Object.assign(state, read());
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== link()) change(read(), true);
  });
}

// `again` says that the view has to be made anew; otherwise only what is marked in it changes.
export function change(changes, again = false) {
  Object.assign(state, changes);
  clearTimeout(writing);
  writing = setTimeout(() => {
    // In a notebook's frame (about:srcdoc) there is no address to write a state into.
    if (location.protocol !== "about:") history.replaceState(null, "", `#${link()}`);
  }, PAUSE);
  listener(again);
}

// To a map, with what is chosen, where it has the same queries and keys.
export function goTo(number, changes = {}) {
  const [map, other] = [mapOf(), maps[number]];
  const alike = map.rows === other.rows && map.columns === other.columns;
  change({ map: number, ...(alike ? {} : { query: null, key: null }), ...changes }, true);
}

function link() {
  const parts = new URLSearchParams({ view: state.view });
  const [map, picture] = [mapOf(), pictureOf()];
  if (map) {
    // Layer and head name a map where they lead back to this picture: `foundMap` takes the first picture that holds
    // such a map. In any other case picture and map are named.
    const isFirst = pictures.findIndex((each) => each.maps.includes(state.map)) === state.picture;
    const names = map.layer === null || !isFirst ? { picture: picture.name, map: map.name } : map;
    for (const name of ["picture", "map", "layer", "head"]) if (name in names) parts.set(name, names[name]);
    if (state.query !== null) parts.set("query", firstOf(rowsOf(map), state.query));
    if (state.key !== null) parts.set("key", firstOf(columnsOf(map), state.key));
  }
  for (const [name, usual] of Object.entries(plain)) if (state[name] !== usual) parts.set(name, state[name]);
  return parts.toString().replaceAll("%2C", ",");
}

// Whatever a link says that is not there is left out: a link may be of another text.
function read() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const isThere = VIEWS.some(([name]) => name === parts.get("view"));
  const found = { picture: 0, map: 0, query: null, key: null };
  for (const [name, usual] of Object.entries(plain)) found[name] = parts.get(name) ?? usual;
  if (maps.length) {
    Object.assign(found, foundMap(parts));
    found.query = positionIn(rowsOf(maps[found.map]), parts.get("query"));
    found.key = positionIn(columnsOf(maps[found.map]), parts.get("key"));
  }
  const isOfMap = maps.length && (parts.has("layer") || parts.has("map"));
  const first = content.tables[0]?.links && !maps.length ? "table" : VIEWS[0]?.[0]; // an index is to lead on
  return { ...found, view: isThere ? parts.get("view") : isOfMap ? "matrix" : first };
}

function foundMap(parts) {
  const isAsked = (name, own) => !parts.has(name) || parts.get(name) === String(own);
  for (const [picture, each] of pictures.entries()) {
    const map = each.maps.find((number) => {
      const { name, layer, head } = maps[number];
      return isAsked("map", name) && isAsked("layer", layer) && isAsked("head", head);
    });
    if (map !== undefined && isAsked("picture", each.name)) return { picture, map };
  }
  return { picture: 0, map: pictures[0].maps[0] };
}

// A link names the position of a token, of a block the first: places change when tokens are left out.
const firstOf = ({ positions }, place) => positions[place].split("–")[0];

function positionIn(axis, position) {
  const place = axis.positions.findIndex((each) => {
    const [first, last = first] = each.split("–").map(Number);
    return first <= Number(position) && Number(position) <= last;
  });
  return place < 0 || position === null ? null : place;
}

// What maps may be sorted by, each with its name and its number for each of them.
export function ordersOf(picture) {
  const write = (share) => share.toFixed(2);
  const orders = new Map(
    Object.entries(picture.looks).map(([header, numbers]) => [header, { header, numbers, write }]),
  );
  const table = content.tables.find(({ role }) => role === "heads");
  const lines = picture.maps.map((number) => lineOfHead(maps[number]));
  for (const [column, { header }] of lines.every(Boolean) ? table.columns.entries() : []) {
    if (column < 2 || !table.numeric[column]) continue; // a layer, a head, or words
    const numbers = lines.map(({ row }) => row[column]);
    orders.set(String(column), { header, numbers, write: (number) => String(Number(number.toPrecision(3))) });
  }
  return orders;
}

// By what a picture's maps are sorted, and their places in that order; nothing where it is by place.
export function orderOf(picture) {
  const by = ordersOf(picture).get(state.sort) ?? null;
  const order = picture.maps.map((_, place) => place);
  if (by) order.sort((a, b) => by.numbers[b] - by.numbers[a] || a - b);
  return { by, order };
}
