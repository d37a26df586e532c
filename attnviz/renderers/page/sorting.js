// What heads look at in this text, and in which order an overview has its maps: by that, or by a measure.
import { lineOfHead, maps } from "./content.js";
import { content } from "./dom.js";
import { state } from "./state.js";

const FOUND_FROM = 0.3; // share from which a head is found by what it looks at, as it is named

// What the maps of a picture look at: of each its place, the name and the share.
export const looksIn = ({ looks }) =>
  Object.entries(looks).flatMap(([name, shares]) =>
    shares.map((share, at) => ({ at, name, share })).filter((each) => each.share >= FOUND_FROM),
  );

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
