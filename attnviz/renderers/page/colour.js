// From values to colours, by the report's scale; the hatching of cells that are not allowed; the legend.
import { bytesOf } from "./cells.js";
import { colourOf, content, element, onDark, write } from "./dom.js";

const N_SHADES = 256; // of each palette on paper, and behind them as many on a dark ground
const palettes = new Map(Object.entries(content.colours ?? {}).map(([name, base64]) => [name, bytesOf(base64)]));

// Where a value lies on the scale, 0 to 1; what lies outside is at its end.
export function placeOf(value, scale) {
  const low = heightOf(scale.low, scale);
  const apart = heightOf(scale.high, scale) - low;
  return Math.min(1, Math.max(0, (heightOf(value, scale) - low) / (apart || 1)));
}

const heightOf = (value, scale) => (scale.is_logarithmic ? Math.log(value) : value);

// What a value is a multiple of: of lift an equal share of its row, else 1.
const unitOf = (cells, row, { is_multiple }) => (is_multiple ? cells.shares[row] : 1);

export function placeOfCell(cells, row, column, scale) {
  return placeOf(cells.at(row, column) / unitOf(cells, row, scale), scale);
}

// The map as an image of one pixel per block of `pool` × `pool` cells: their mean, since nearly all maxima of blocks are
// large; but the strongest where colours are no logarithms, in which a thin line would fade.
// Cells that are not allowed are left transparent, so that what lies behind shows through.
export function imageOf(cells, scale, pool = 1) {
  const [width, height] = [Math.ceil(cells.nColumns / pool), Math.ceil(cells.nRows / pool)];
  const [values, counts] = [new Float64Array(width * height), new Uint32Array(width * height)];
  const isMean = scale.is_logarithmic && !scale.is_signed;
  for (let row = 0; row < cells.nRows; row++) {
    const top = width * Math.floor(row / pool);
    const unit = unitOf(cells, row, scale);
    for (let column = 0; column < cells.nColumns; column++) {
      if (cells.allowed && !cells.isAllowed(row, column)) continue;
      const at = top + ((column / pool) | 0);
      const value = cells.at(row, column) / unit;
      if (isMean) values[at] += (value - values[at]) / ++counts[at];
      else if (!counts[at]++ || Math.abs(value) > Math.abs(values[at])) values[at] = value;
    }
  }
  const image = new ImageData(width, height);
  for (const [at, count] of counts.entries()) {
    if (!count) continue;
    image.data.set(colourAt(placeOf(values[at], scale), scale), 4 * at);
    image.data[4 * at + 3] = 255;
  }
  return canvasOf(image);
}

// The image over which a map's cells lie, or null.
export function backdropOf({ backdrop }) {
  if (backdrop === null) return null;
  const held = content.backdrops[backdrop];
  held.canvas ??= canvasOf(greyImage(held));
  return held.canvas;
}

function greyImage({ width, height, grey }) {
  const image = new ImageData(width, height);
  for (const [place, shade] of bytesOf(grey).entries()) image.data.set([shade, shade, shade, 255], 4 * place);
  return image;
}

function canvasOf(image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export function hatching(context) {
  const tile = new OffscreenCanvas(6, 6);
  const pen = tile.getContext("2d");
  pen.fillStyle = colourOf("--forbidden");
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = colourOf("--hatch");
  for (const shift of [-6, 0, 6]) {
    pen.moveTo(shift - 1, 7);
    pen.lineTo(shift + 7, -1);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

// A bar of colours with the numbers and the words that a figure has.
export function legend(scale, isHatched = false) {
  const shades = Array.from({ length: N_SHADES }, (_, shade) => paintOf(scale)(shade / (N_SHADES - 1)));
  const ramp = { "background-image": `linear-gradient(to right, ${shades.join(", ")})` };
  const bar = element("div", { class: "bar", style: ramp });
  const ticks = element("div", { class: "ticks", "aria-hidden": "true" });
  for (const [place, text] of scale.ticks) {
    const [left, back] = [100 * place, -100 * place].map((share) => `${share}%`);
    const where = { left, transform: `translateX(${back})` }; // the first and the last stay within the bar
    ticks.append(element("span", { style: where }, text));
  }
  const made = element("div", { class: "tools hint legend" });
  made.append(element("div", { class: "scale" }, element("p", {}, scale.label), bar, ticks));
  if (!isHatched) return made;
  const swatch = element("canvas", { width: 24, height: 16, "aria-hidden": "true" });
  const brush = swatch.getContext("2d");
  brush.fillStyle = hatching(brush);
  brush.fillRect(0, 0, 24, 16);
  made.append(element("p", {}, swatch, " ", write("ui.hatched")));
  return made;
}

function colourAt(place, scale) {
  const shade = 3 * (Math.round((N_SHADES - 1) * place) + (onDark.matches ? N_SHADES : 0));
  return palettes.get(scale.colours).subarray(shade, shade + 3);
}

export const paintOf = (scale) => (place) => `rgb(${colourAt(place, scale).join(" ")})`;

const linear = (part) => (part <= 10.31475 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);

// What is read on a colour, at least 4.5 to 1: WCAG 2.2.
export function inkOn(place, scale) {
  const [red, green, blue] = Array.from(colourAt(place, scale), linear);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 ? "#fff" : "#000";
}
