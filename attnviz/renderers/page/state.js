// Which view of which map is shown, and which query is chosen: as one object, and as a link.
import { columnsOf, content, maps, pictures, rowsOf } from "./content.js";
import { links } from "./views.js";

// Those that the page has something to show in.
export const VIEWS = [
  ...(content.atlas ? ["atlas"] : []),
  ...(content.graph ? ["graph"] : []),
  ...(content.screen?.length ? ["screen"] : []),
  ...(pictures.some((picture) => picture.maps.length > 1) ? ["overview"] : []),
  ...(maps.length ? ["matrix"] : []),
  ...(content.charts.length ? ["charts"] : []),
  ...(content.tables.length ? ["table"] : []),
];
const PAUSE = 150; // milliseconds: browsers refuse a page that writes its address too often

export const state = {
  view: "overview",
  picture: 0,
  map: 0,
  query: null,
  key: null,
  scale: "", // its kind; nothing: the report's
  sort: -1, // by what an overview is: a column of the table of heads, or a name in `sorting.js`; -1: by place
  digits: "three", // of numbers; or "all": as they are stored
  find: "", // by what heads were looked for
  side: "from", // of the chosen word: what it attends to, or with "to" what attends to it
};
let listener = () => {};
let writing = 0;

export const pictureOf = () => pictures[state.picture];
export const mapOf = () => maps[state.map];

// The picture's own scale, else the one that is chosen, else the report's.
export function scaleOf(picture = pictureOf(), kind = state.scale) {
  return picture.scale ?? content.scales.find((each) => each.kind === kind) ?? content.scales[0];
}

export function listen(heard) {
  listener = heard;
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== link()) change(read(location.hash), true);
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
  const parts = new URLSearchParams();
  const [map, picture] = [mapOf(), pictureOf()];
  parts.set("view", state.view);
  links[state.view]?.write(parts);
  if (!map) return parts.toString();
  if (map.layer === null || pictures.findIndex((each) => each.maps.includes(state.map)) !== state.picture) {
    parts.set("picture", picture.name);
    parts.set("map", map.name);
  } else {
    parts.set("layer", map.layer);
    parts.set("head", map.head);
  }
  if (state.query !== null) parts.set("query", firstOf(rowsOf(map), state.query));
  if (state.key !== null) parts.set("key", firstOf(columnsOf(map), state.key));
  if (scaleOf() !== scaleOf(picture, "")) parts.set("scale", state.scale);
  if (state.view === "overview" && state.sort !== -1) parts.set("sort", state.sort);
  if (state.find) parts.set("find", state.find);
  if (state.digits === "all") parts.set("digits", "all");
  if (state.view === "matrix" && state.side === "to") parts.set("side", "to");
  return parts.toString().replaceAll("%2C", ",");
}

// Whatever a link says that is not there is left out: a link may be of another text.
export function read(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const asked = VIEWS.find((name) => name === (parts.get("view") === "text" ? "matrix" : parts.get("view")));
  if (!maps.length) {
    const view = asked ?? (content.tables[0]?.links ? "table" : VIEWS[0]); // an index is to lead on
    return Object.assign({ view }, ...Object.values(links).map((each) => each.read(parts)));
  }
  const number = (name) => (/^\d+(\.\d+)?$/.test(parts.get(name) ?? "") ? Number(parts.get(name)) : null);
  const head = parts.get("head") === "mean" ? "mean" : number("head");
  const found = foundMap(parts, number("layer"), head);
  const scale = scaleOf(pictures[found.picture], parts.get("scale"));
  const view = asked ?? (parts.has("layer") || parts.has("map") ? "matrix" : VIEWS[0]);
  const [rows, columns] = [rowsOf, columnsOf].map((axisOf) => axisOf(maps[found.map]));
  return {
    ...found,
    view,
    query: positionIn(rows, parts.get("query")),
    key: positionIn(columns, parts.get("key")),
    scale: scale.kind,
    sort: number("sort") ?? parts.get("sort") ?? -1,
    find: parts.get("find") ?? "",
    digits: parts.get("digits") === "all" ? "all" : "three",
    side: parts.get("side") === "to" ? "to" : "from",
  };
}

function foundMap(parts, layer, head) {
  for (const [picture, each] of pictures.entries()) {
    if (parts.has("picture") && each.name !== parts.get("picture")) continue;
    const map = each.maps.find((number) => {
      const { name, layer: own, head: ownHead } = maps[number];
      if (parts.has("map")) return name === parts.get("map");
      if (layer === null && head === null) return true;
      return own !== null && (layer ?? own) === own && (head ?? 0) === ownHead;
    });
    if (map !== undefined) return { picture, map };
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
