// Numbers as dots: one path for all of a sample, so that thousands are quick to draw, and where each of them stands.
import { toneOf } from "./charts_axes.js";
import { drawing } from "./dom.js";

export const DOT = 4; // pixels
export const PITCH_OF_DOTS = 4.6;
const CAPS = ["round", "square"]; // so that groups differ without their colours, too

export function dots(group, d, size) {
  const cap = CAPS[group % CAPS.length];
  return drawing("path", { class: `dots ${toneOf(group)}`, d, "stroke-width": size, "stroke-linecap": cap });
}

// For each height, from the lowest number up, in which column its dot stands: 0, 1, -1, 2 … the first that is free.
export function besideEachOther(heights) {
  const tops = new Float64Array(heights.length + 2).fill(Infinity); // of the columns 0, 1, -1, 2, -2 …
  let side = 1;
  return heights.map((height) => {
    const columnAt = (turn) => (side > 0 || !turn ? turn : turn % 2 ? turn + 1 : turn - 1); // else -1 before 1
    let turn = 0;
    while (tops[columnAt(turn)] - height < PITCH_OF_DOTS) turn++;
    const column = columnAt(turn);
    tops[column] = height;
    if (turn) side = -side; // else dots would pile up on one side
    return (column % 2 ? 1 : -1) * Math.ceil(column / 2);
  });
}
