// What heads look at, and in which order an overview has its maps: by that, by place, by names, or by a measure.
import { content, hasQueries, lineOfHead, maps, nameIn, readyCells, rowsOf, writingOf } from "./content.js";
import { state } from "./state.js";

// What a head may look at: of a query at a place, which keys of the text these are.
const LOOKS = {
  previous: { header: "previous token", keysOf: ({ last }, query) => (query > 0 && query <= last ? [query - 1] : []) },
  next: { header: "next token", keysOf: ({ last }, query) => (query < last ? [query + 1] : []) },
  first: { header: "first token", keysOf: () => [0] },
  markers: { header: "markers", inTable: "special tokens", keysOf: ({ markers }) => markers },
  same: { header: "same word", keysOf: ({ alike }, query) => alike[query].filter((key) => key !== query) },
};
const NAMED = "named";
const LOOKS_AT = "looks at"; // a column of the table of heads
const NAMED_LOOK = /^(.+) (\d\.\d+)$/; // what stands there
// As in the table of heads: shares from which a head looks at something, and how many equal shares they are.
const LARGE = [
  [0.25, 2],
  [0.1, 5],
];
const writeShare = (share) => share.toFixed(2);
const writeNumber = (number) => String(Number(number.toPrecision(3)));

// Of a text: its last place, which tokens are markers, and for each token where the same word stands.
function layoutOf(axis) {
  const { special } = writingOf(axis);
  const words = axis.labels.map((label, place) => (special[place] ? null : label.trim().toLowerCase()));
  const places = new Map(words.map((word) => [word, []]));
  for (const [place, word] of words.entries()) places.get(word).push(place);
  const alike = words.map((word) => (word === null ? [] : places.get(word)));
  return { last: words.length - 1, markers: [...words.keys()].filter((place) => special[place]), alike };
}

// What is to be found in all maps of a picture: of one text that is not in blocks and of which all is shown.
function looksOf(picture) {
  const [map] = picture.maps.map((number) => maps[number]);
  const isAlike = (number) => maps[number].rows === map.rows && hasQueries(maps[number]);
  const axis = rowsOf(map);
  const isText = map.rows === map.columns && axis.positions[0] === "0" && axis.writing;
  if (!isText || picture.scale || content.scales[0].is_signed || !picture.maps.every(isAlike)) return {};
  const text = layoutOf(axis);
  const isThere = ([, { keysOf }]) => text.alike.some((_, query) => keysOf(text, query).length);
  return Object.fromEntries(
    Object.entries(LOOKS)
      .filter(isThere)
      .map(([name, { header, inTable = header, keysOf }]) => {
        const of = (number) => shareOf(number, keysOf, text);
        const equalOf = (number) => shareOf(number, keysOf, text, ({ shares }, query) => shares[query]);
        return [name, { header, inTable, write: writeShare, of, equalOf }];
      }),
  );
}

// The mean over all queries, whichever are seen, of what they give to the keys that are looked for.
function shareOf(number, keysOf, text, weightOf = (cells, query, key) => cells.at(query, key)) {
  const cells = readyCells(number);
  let sum = 0;
  for (let query = 0; query < cells.nRows; query++) {
    for (const key of keysOf(text, query)) if (cells.isAllowed(query, key)) sum += weightOf(cells, query, key);
  }
  return sum / cells.nRows;
}

// What the maps of a picture are found to look at in this text: of each its place, the name and the share. Measured of
// all that may be looked at, and besides as the table of heads says. Cells have to be ready.
export function looksIn(picture) {
  const looks = Object.values(looksOf(picture));
  const measured = looks.flatMap(({ header, inTable, of, equalOf }) =>
    picture.maps.map((number, at) => {
      const [share, equal] = [of(number), equalOf(number)];
      const isLarge = LARGE.some(([least, times]) => Number(writeShare(share)) >= least && share >= times * equal);
      return isLarge ? { at, name: header, called: `${header} ${inTable}`, share } : null;
    }),
  );
  const told = looksInTable(picture).filter(({ name }) => looks.every(({ inTable }) => inTable !== name));
  return [...measured.filter(Boolean), ...told];
}

export const namesOfLooks = (picture) => [
  ...Object.values(looksOf(picture)).map(({ header }) => header),
  ...looksInTable(picture).map(({ name }) => name),
];

function looksInTable(picture) {
  return picture.maps.flatMap((number, at) => {
    const line = lineOfHead(maps[number]);
    const said = line?.row[line.columns.findIndex(({ header }) => header === LOOKS_AT)];
    const [, name, share] = NAMED_LOOK.exec(said ?? "") ?? [];
    return name ? [{ at, name, called: name, share: Number(share) }] : [];
  });
}

// What maps may be sorted by, each with its name and its number for each of them; names have no number.
export function ordersOf(picture) {
  const table = content.tables.find(({ role }) => role === "heads");
  const lines = picture.maps.map((number) => lineOfHead(maps[number]));
  const measures = lines.every(Boolean) ? table.columns.entries() : [];
  const ofMeasures = [...measures]
    .filter(([column]) => column > 1 && table.numeric[column])
    .map(([column, { header }]) => [
      column,
      { header, write: writeNumber, of: (_, place) => lines[place].row[column] },
    ]);
  return new Map([
    ...Object.entries(looksOf(picture)),
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
