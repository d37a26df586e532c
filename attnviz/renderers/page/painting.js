// A matrix on its canvas: cells, the cross at the current cell, and labels.
import { backdropOf, hatching, imageOf } from "./colour.js";
import { colourOf, onDark } from "./dom.js";

const FONT_SIZE = 11; // pixels, of a label
const LABEL = 12; // pixels that a label takes
const LEFT_TO_RIGHT = "\u200e"; // a position stays before its token, whatever script that is of
const THIN = 8; // pixels of a cell
const NOTABLE = 2; // equal shares, as a mean of its rows: a column that the eye goes to
const OVER_IMAGE = 0.6; // opacity of cells, so that the image is seen through them
const VEIL = 0.75; // of paper over what a word that is pointed at has nothing to do with

// Margins for labels and the largest cells at which all of the map can be seen; no labels where cells are smaller. Those
// of columns lie flat where each has room over its own, or needs no more than one that stands: a character of Chinese.
export function layOut(plot, width, tallest, smallest, largest = Number.POSITIVE_INFINITY) {
  const { pen, canvas, cells } = plot;
  plot.font = `${FONT_SIZE}px ${getComputedStyle(document.body).fontFamily}`;
  pen.font = plot.font;
  const widthsOf = (labels) => labels.map((label) => pen.measureText(label).width);
  const room = (labels, most) => Math.ceil(Math.min(Math.max(...widthsOf(labels)) + 10, 0.3 * most));
  const whole = () =>
    Math.min((width - plot.gutter - 2) / cells.nColumns, (tallest - plot.head - FONT_SIZE) / cells.nRows, largest);
  const isCut = (labels, most) => median(widthsOf(labels)) > most - 5;
  const isCutAbove = () => !plot.isFlat && isCut(plot.columns, plot.head);
  const isUnreadable = () => plot.isSmall && (isCut(plot.rows, plot.gutter) || isCutAbove());
  const none = { gutter: 1, head: 1 };
  Object.assign(plot, none);
  if (whole() >= smallest) {
    Object.assign(plot, { gutter: room(plot.rows, width), head: LABEL + 5 });
    plot.isFlat = Math.max(...widthsOf(plot.columns)) < Math.max(whole() - 4, LABEL);
    if (!plot.isFlat) plot.head = room(plot.columns, Math.min(width, tallest));
    if (whole() < smallest || isUnreadable()) Object.assign(plot, none);
  }
  plot.whole = whole();
  Object.assign(plot, { side: plot.whole, left: 0, top: 0 });
  Object.assign(plot, { width: cells.nColumns * plot.whole, height: cells.nRows * plot.whole });
  const size = [plot.gutter + plot.width + 2, plot.head + plot.height + (plot.gutter > 1 ? FONT_SIZE / 2 : 1)];
  [canvas.width, canvas.height] = size.map((length) => Math.round(length * devicePixelRatio));
  [canvas.style.width, canvas.style.height] = size.map((length) => `${length}px`);
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

// The cell at a place of the canvas, or null beside the map.
export function cellAt(plot, { offsetX, offsetY }) {
  const [x, y] = [offsetX - plot.gutter, offsetY - plot.head];
  if (x < 0 || y < 0 || x >= plot.width || y >= plot.height) return null;
  const [row, column] = [(plot.top + y) / plot.side, (plot.left + x) / plot.side].map(Math.floor);
  return row < plot.cells.nRows && column < plot.cells.nColumns ? { query: row, key: column } : null;
}

export function paint(plot) {
  const { pen, canvas } = plot;
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.save();
  pen.translate(plot.gutter, plot.head);
  pen.beginPath();
  pen.rect(0, 0, plot.width, plot.height);
  pen.clip();
  if (plot.cells.allowed && !plot.cells.isOfPairs) {
    pen.fillStyle = hatching(pen);
    pen.fillRect(0, 0, plot.width, plot.height);
  }
  paintCells(plot);
  if (plot.over?.word) lightUp(plot, plot.over);
  else if (plot.chosen()) paintCross(plot, plot.chosen(), colourOf("--accent"));
  if (plot.over && !plot.over.word) paintCross(plot, plot.over, colourOf("--ink"));
  pen.restore();
  pen.strokeStyle = colourOf("--rule"); // else white cells would not be told from paper
  pen.strokeRect(plot.gutter - 0.5, plot.head - 0.5, plot.width + 1, plot.height + 1);
  if (plot.gutter > 1) paintLabels(plot);
}

function paintCells(plot) {
  const pool = Math.max(1, 1 / (plot.side * devicePixelRatio)); // a pixel of the screen each, or some would be two
  const kind = `${pool} ${onDark.matches}`;
  if (!plot.images.has(kind)) plot.images.set(kind, imageOf(plot.cells, plot.scale, pool));
  const [image, side] = [plot.images.get(kind), plot.side * pool];
  const backdrop = backdropOf(plot.map);
  if (backdrop) {
    plot.pen.imageSmoothingEnabled = true;
    const { nRows, nColumns } = plot.cells;
    plot.pen.drawImage(backdrop, -plot.left, -plot.top, nColumns * plot.side, nRows * plot.side);
    plot.pen.globalAlpha = OVER_IMAGE;
  }
  plot.pen.imageSmoothingEnabled = false;
  plot.pen.drawImage(image, -plot.left, -plot.top, image.width * side, image.height * side);
  plot.pen.globalAlpha = 1;
}

// Of a word, its row or its column or both: what lies beside them turns pale, so that they stand out on every colour.
function lightUp(plot, { query, key }) {
  const { pen, side, left, top, width, height } = plot;
  pen.fillStyle = colourOf("--paper");
  pen.globalAlpha = VEIL;
  pen.fillRect(0, 0, width, height);
  pen.globalAlpha = 1;
  pen.save();
  pen.beginPath();
  if (query !== null) pen.rect(0, query * side - top, width, side);
  if (key !== null) pen.rect(key * side - left, 0, side, height);
  pen.clip();
  paintCells(plot);
  pen.restore();
  paintCross(plot, { query, key, word: true }, colourOf("--ink"));
}

// Frames around the row, the column and the cell; a pale line beside a dark one is seen on every colour.
function paintCross({ pen, side, left, top, width, height }, { query, key, word, alone }, colour) {
  const room = side < THIN ? 2 : 0; // so that frames do not lie on what they are around
  const [x, y] = [key * side - left - room, query * side - top - room].map(Math.round);
  const across = side + 2 * room;
  const cell = [x, y, across, across, 2];
  const lines = [
    ...(query === null ? [] : [[-4, y, width + 8, across, 1]]),
    ...(key === null ? [] : [[x, -4, across, height + 8, 1]]),
    ...(word ? [] : [cell]),
  ];
  for (const [from, to, wide, high, line] of alone ? [cell] : lines) {
    for (const [stroke, thickness] of [
      [colourOf("--paper"), line + 2],
      [colour, line],
    ]) {
      pen.strokeStyle = stroke;
      pen.lineWidth = thickness;
      pen.strokeRect(from, to, wide, high);
    }
  }
}

function paintLabels(plot) {
  const { pen, gutter, head } = plot;
  const { query: row, key: column } = plot.over ?? plot.chosen() ?? { query: null, key: null };
  pen.font = plot.font;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const down = { labels: plot.rows, from: plot.top, length: plot.height, current: row, room: gutter - 5 };
  eachLabel(plot, down, plot.pair ? [plot.pair[0]] : [], (text, at) => pen.fillText(text, gutter - 5, head + at));
  pen.textAlign = plot.isFlat ? "center" : "left";
  const room = plot.isFlat ? Math.max(plot.side, LABEL) : head - 5;
  const across = { labels: plot.columns, from: plot.left, length: plot.width, current: column, room };
  const notable = () => (plot.map.has_queries && !plot.scale.is_signed ? plot.cells.columnsThatGet(NOTABLE) : []);
  eachLabel(plot, across, plot.pair ? [plot.pair[1]] : notable(), (text, at) => {
    pen.save();
    pen.translate(gutter + at, head - (plot.isFlat ? LABEL / 2 + 2 : 5));
    if (!plot.isFlat) pen.rotate(-Math.PI / 2);
    pen.fillText(text, 0, 0);
    pen.restore();
  });
}

// Every label; or where there is room the current one, those that come first, and every few.
function eachLabel({ pen, side }, { labels, from, length, current, room }, first, write) {
  const step = Math.max(1, Math.ceil(LABEL / side));
  const shown = new Set();
  const isFree = (place) => {
    for (let near = place - step + 1; near < place + step; near++) if (shown.has(near)) return false;
    return true;
  };
  const [begin, end] = [from, from + length].map((at) => Math.floor(at / side / step));
  const even = Array.from({ length: end - begin + 1 }, (_, number) => (begin + number) * step);
  for (const place of [...(current === null ? [] : [current]), ...first, ...even]) if (isFree(place)) shown.add(place);
  for (const place of shown) {
    const at = (place + 0.5) * side - from;
    if (at < 0 || at > length || place >= labels.length) continue;
    pen.fillStyle = colourOf(place === current ? "--ink" : "--quiet");
    write(`${LEFT_TO_RIGHT}${shortened(pen, labels[place], room)}`, at);
  }
}

// Cut until it has room: of a name that stands before its row a sign too many would hide the first digit.
function shortened(pen, text, room) {
  if (pen.measureText(text).width <= room || text.length < 3) return text;
  const shorter = [...text].slice(0, -2).join("");
  return shortened(pen, `${shorter.replace(/[\s…]+$/u, "")}…`, room);
}
