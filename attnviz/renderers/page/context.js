// What stands around a pair of tokens of a very long text, and what its query attends to most.
import { columnsOf, rowsOf } from "./content.js";
import { element, isolated, nextFrame } from "./dom.js";
import { strongestOf } from "./text.js";

const N_AROUND = 12; // tokens on either side

export class Context {
  constructor(cells, map) {
    Object.assign(this, { cells, map, part: element("div", { class: "listed" }) });
  }

  mark(cell) {
    this.cell = cell;
    nextFrame(this, () => this.show(this.cell));
  }

  show(cell) {
    if (!cell) return this.part.replaceChildren();
    const { map, cells } = this;
    const around = [
      [map.row_axis, rowsOf(map), cell.query],
      [map.column_axis, columnsOf(map), cell.key],
    ].flatMap(([title, axis, place]) => [element("h2", { class: "axis" }, title), passage(axis, place)]);
    return this.part.replaceChildren(...around, strongestOf(map, cells, true, cell.query).table);
  }
}

function passage({ labels }, place) {
  const [from, to] = [Math.max(0, place - N_AROUND), place + N_AROUND + 1];
  const words = labels.slice(from, to).flatMap((label, at) => {
    const word = isolated(label);
    return [from + at === place ? element("strong", {}, `${place} `, word) : word, " "];
  });
  return element("p", { class: "around" }, from ? "… " : "", ...words, to < labels.length ? "…" : "");
}
