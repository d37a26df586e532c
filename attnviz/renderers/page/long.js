// What the page of a long text has beside the others: its maps are zoomed into, from many weights a cell to single ones.
import { bytesOf, unpackedExact } from "./cells.js";
import { unitOf } from "./colour.js";
import { cellsOf, content, rowsOf, takeParts, wholeMaps } from "./content.js";
import { Context } from "./context.js";
import { Factors } from "./factors.js";
import { long } from "./views.js";
import { ZoomPlot } from "./zoom.js";

const N_SAMPLED = 20_011; // cells of a map, for its scale: no multiple of its width
const worked = new Map();

// What the weights of a map are worked out from, unpacked when it is first asked for.
function factorsOf(number) {
  if (!worked.has(number)) worked.set(number, unpackFactors(number));
  return worked.get(number);
}

async function unpackFactors(number) {
  const { factors } = wholeMaps[number];
  const { query, key, width } = factors;
  const pooled = await cellsOf(number);
  const parts = await takeParts(`factors-${number}`);
  const array = (place, type) => (place === null ? null : new type(bytesOf(content.factored.arrays[place]).buffer));
  const of = (side) => ({ ...side, places: array(side.places, Uint32Array), steps: array(side.steps, Float32Array) });
  const nRows = rowsOf(wholeMaps[number]).labels.length;
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

Object.assign(long, { factorsOf, scaleOfLargest, ZoomPlot, Context });
