// What heads look at in this text, and in which order an overview has its maps: by that, by names, or by a measure.
import { content, lineOfHead, maps, nameIn } from "./content.js";
import { state } from "./state.js";

const NAMED = "named";
const FOUND_FROM = 0.3; // share from which a head is found by what it looks at, as it is named

// What the maps of a picture look at: of each its place, the name and the share.
export const looksIn = ({ looks }) =>
  Object.entries(looks).flatMap(([name, shares]) =>
    shares.map((share, at) => ({ at, name, share })).filter((each) => each.share >= FOUND_FROM),
  );

// What maps may be sorted by, each with its name and its number for each of them; names have no number.
export function ordersOf(picture) {
  const table = content.tables.find(({ role }) => role === "heads");
  const lines = picture.maps.map((number) => lineOfHead(maps[number]));
  const measures = lines.every(Boolean) ? table.columns.entries() : [];
  const ofMeasures = [...measures]
    .filter(([column]) => column > 1 && table.numeric[column])
    .map(([column, { header }]) => [
      column,
      { header, write: (number) => String(Number(number.toPrecision(3))), of: (_, place) => lines[place].row[column] },
    ]);
  return new Map([
    ...Object.entries(picture.looks).map(([header, shares]) => [
      header,
      { header, write: (share) => share.toFixed(2), of: (_, at) => shares[at] },
    ]),
    ...(picture.names ? [[NAMED, { header: "names of heads" }]] : []),
    ...ofMeasures,
  ]);
}

// By what a picture's maps are sorted, and their places in that order; nothing where it is by place.
export function orderOf(picture) {
  const by = ordersOf(picture).get(state.sort) ?? null;
  const order = picture.maps.map((_, place) => place);
  if (!by) return { by, order };
  const numbers = by.of && picture.maps.map(by.of);
  const isUnnamed = (place) => (nameIn(picture, place) ? 0 : 1);
  const byName = (a, b) => isUnnamed(a) - isUnnamed(b) || nameIn(picture, a).localeCompare(nameIn(picture, b), "en");
  order.sort((a, b) => (numbers ? numbers[b] - numbers[a] : byName(a, b)) || a - b);
  return { by, order, numbers };
}
