// The line that says in words what is pointed at, with its number in three digits, or as it is stored.
import { nameOfColumn, nameOfRow } from "./content.js";
import { named, say, tell, write } from "./dom.js";
import { scaleOf, state } from "./state.js";

const DIGITS = 3;

const axis = (name) => name.split(/ \(|（/u)[0];

// Of doublings, how many times more or less.
export function said(cells, row, column) {
  const digits = state.digits === "all" ? null : DIGITS;
  const number = cells.said(row, column, digits);
  if (!scaleOf().doublings || !cells.isAllowed(row, column)) return number;
  const doublings = cells.at(row, column);
  const times = `${doublings < 0 ? "÷" : "×"} ${Number((2 ** Math.abs(doublings)).toPrecision(DIGITS))}`;
  return digits ? times : `${times} (log₂: ${number})`;
}

// A cell of a long text stands for `block` × `block` weights.
export function tellCell(map, cells, row, column) {
  const { block } = map;
  const where = block > 1 ? write(scaleOf().is_signed ? "ui.largest_of" : "ui.mean_of", { block }) : "";
  // How many equal shares a weight is, where colours say that and the page knows the weight to a few per cent.
  const [number, times] = [said(cells, row, column), cells.at(row, column) / cells.shares[row]];
  const isKnown = scaleOf().is_multiple && cells.isAllowed(row, column) && cells.isFine(row, column);
  const values = {
    map: `${map.title}${where}`,
    row_axis: axis(map.row_axis),
    row: named(nameOfRow(map, row)),
    column_axis: axis(map.column_axis),
    column: named(nameOfColumn(map, column)),
    number,
  };
  const shares = isKnown ? write("ui.shares", { times: Number(times.toPrecision(2)) }) : "";
  tell(...say(map.has_queries ? "ui.attends" : "ui.cell", values), shares);
}
