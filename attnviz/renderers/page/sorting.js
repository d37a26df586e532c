// In which order an overview has its maps: by what heads look at in this text, or by a measure.
import { lineOfHead, maps } from "./content.js";
import { content } from "./dom.js";
import { state } from "./state.js";

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
