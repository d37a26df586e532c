// What the page of a long text has beside the others: its maps are zoomed into, from many weights a cell to single ones.
import { bytesOf, unpackedExact } from "./cells.js";
import { unitOf } from "./colour.js";
import { content, rowsOf, takeParts, wholeCellsOf, wholeMaps } from "./content.js";
import { Context } from "./context.js";
import { Factors } from "./factors.js";
import { partOfFactors } from "./part.js";
import { long } from "./views.js";
import { ZoomPlot } from "./zoom.js";

const N_SAMPLED = 20_011; // cells of a map, for its scale: no multiple of its width
const [worked, ready, cutAxes] = [new Map(), new Map(), new Map()];

// What the weights of a map are worked out from, unpacked when it is first asked for; of the tokens that are shown.
async function factorsOf(number) {
  if (!worked.has(number)) worked.set(number, unpackFactors(number));
  const whole = await worked.get(number);
  const [from, to] = shownOfTokens(wholeMaps[number]);
  if (to - from === whole.nRows) return whole;
  const last = ready.get(number);
  if (last?.from !== from || last.to !== to) ready.set(number, { from, to, part: partOfFactors(whole, from, to) });
  return ready.get(number).part;
}

// The first token that is shown, and the first behind it that is not.
function shownOfTokens(map) {
  const { positions } = rowsOf(map);
  return [Number(positions[0]), Number(positions.at(-1)) + 1];
}

// Tokens can be left out at the ends of a text that is queries and keys, of maps whose weights can be worked out: then
// only blocks at the ends are to be worked out anew.
function canBeCut(kept) {
  const isCut = ({ layer, factors, allRows, allColumns }) => layer === null || (factors && allRows === allColumns);
  return wholeMaps.every(isCut) && kept.every((places) => places.at(-1) - places[0] === places.length - 1);
}

// The blocks of a map, as its tokens that are shown have them; those that are no longer whole are called by both ends.
function cutBlocks(map) {
  const { pooled, factors } = map;
  const [from, to] = shownOfTokens(map);
  const all = content.axes[map.allRows].labels;
  const cut = (axis) => {
    const key = `${axis} ${from} ${to}`;
    if (to - from === all.length) return axis;
    if (cutAxes.has(key)) return cutAxes.get(key);
    const { labels: names, positions } = content.axes[axis];
    const made = { labels: [], positions: [], writing: null };
    for (let block = Math.floor(from / factors.size); block * factors.size < to; block++) {
      const [whole, next] = [block * factors.size, Math.min(all.length, (block + 1) * factors.size)];
      const [begin, last] = [Math.max(from, whole), Math.min(to, next) - 1];
      const isWhole = begin === whole && last === next - 1;
      const both = (between, of) => (begin === last ? of(begin) : `${of(begin)}${between}${of(last)}`);
      made.labels.push(isWhole ? names[block] : both(" … ", (place) => all[place]));
      made.positions.push(isWhole ? positions[block] : both("–", String));
    }
    cutAxes.set(key, content.axes.push(made) - 1);
    return cutAxes.get(key);
  };
  Object.assign(pooled, { rows: cut(pooled.allRows), columns: cut(pooled.allColumns) });
}

async function partOfBlocks(number, cells) {
  const [from, to] = shownOfTokens(wholeMaps[number]);
  return to - from === content.axes[wholeMaps[number].allRows].labels.length ? cells : (await factorsOf(number)).pooled;
}

const shareNotShown = (number) => ready.get(number).part.leftOut;

async function unpackFactors(number) {
  const { factors } = wholeMaps[number];
  const { query, key, width } = factors;
  const pooled = await wholeCellsOf(number);
  const parts = await takeParts(`factors-${number}`);
  const array = (place, type) => (place === null ? null : new type(bytesOf(content.factored.arrays[place]).buffer));
  const of = (side) => ({ ...side, places: array(side.places, Uint32Array), steps: array(side.steps, Float32Array) });
  const nRows = content.axes[wholeMaps[number].allRows].labels.length;
  const nNumbers = (query.n + key.n) * width;
  const [deflated, raw, rounded] = parts;
  const exact = unpackedExact(deflated, raw, nRows + (rounded ? 0 : nNumbers));
  const given = {
    ...factors,
    query: of(query),
    key: of(key),
    bias: array(factors.bias, Float32Array),
    attendable: array(factors.attendable, Uint8Array),
    shares: array(factors.shares, Float32Array),
  };
  const numbers = rounded ? new Int16Array(rounded.buffer) : exact.subarray(0, nNumbers);
  return new Factors(given, numbers, exact.subarray(exact.length - nRows), pooled, content.factored.error);
}

// For cells that are the largest of very many weights each: from nearly the least to the largest multiple that there is,
// in whole doublings, because by the scale of single weights all of them would be dark.
function scaleOfLargest(scale, several) {
  if (!scale.is_multiple) return scale;
  const found = several.flatMap((cells) => [...multiplesOf(cells, scale)]).sort((a, b) => a - b);
  const [low, high] = [found[Math.floor(found.length / 50)] ?? 1, found.at(-1) ?? 2].map(Math.log2);
  const ends = { low: 2 ** Math.floor(low), high: 2 ** Math.max(Math.ceil(high), Math.floor(low) + 1) };
  return { ...scale, ...ends, label: `${scale.label}: the largest of the many weights of each cell` };
}

function* multiplesOf(cells, scale) {
  const every = Math.max(1, Math.floor((cells.nRows * cells.nColumns) / N_SAMPLED));
  for (let at = 0; at < cells.nRows * cells.nColumns; at += every) {
    const [row, column] = [Math.floor(at / cells.nColumns), at % cells.nColumns];
    const weight = cells.isAllowed(row, column) ? cells.at(row, column) : 0;
    if (weight > 0) yield weight / unitOf(cells, row, scale);
  }
}

Object.assign(long, { factorsOf, scaleOfLargest, canBeCut, cutBlocks, partOfBlocks, shareNotShown, ZoomPlot, Context });
