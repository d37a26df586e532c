// The line that says in words what is pointed at, with its number in three digits, or as it is stored.
import { columnsOf, hasQueries, isDifference, rowsOf, tokenOf } from "./content.js";
import { byId, element, named } from "./dom.js";
import { scaleOf, state } from "./state.js";

const DIGITS = 3;

export const nameOfRow = (map, row) => (hasQueries(map) ? tokenOf(row, rowsOf(map)) : rowsOf(map).labels[row]);
export const nameOfColumn = (map, column) =>
  hasQueries(map) || map.column_axis.startsWith("key")
    ? tokenOf(column, columnsOf(map))
    : columnsOf(map).labels[column];
export const namesOf = (map) => ({
  rows: rowsOf(map).labels.map((_, row) => nameOfRow(map, row)),
  columns: columnsOf(map).labels.map((_, column) => nameOfColumn(map, column)),
});
const axis = (name) => name.split(" (")[0];

// Of doublings, how many times more or less.
export function said(cells, row, column) {
  const digits = state.digits === "all" ? null : DIGITS;
  const number = cells.said(row, column, digits);
  if (!scaleOf().doublings || !cells.isAllowed(row, column)) return number;
  const doublings = cells.at(row, column);
  const times = `${doublings < 0 ? "÷" : "×"} ${Number((2 ** Math.abs(doublings)).toPrecision(DIGITS))}`;
  return digits ? times : `${times} (log₂: ${number})`;
}

export function tell(...parts) {
  byId("readout").replaceChildren(...parts);
}

// A view without a legend, that is drawn once.
export const still = (hint) => ({ legend: () => "", mark: () => tell(hint), draw: () => {} });

// A cell of a long text stands for `block` × `block` weights.
export function tellCell(map, cells, row, column) {
  const { block } = map;
  const what = isDifference(scaleOf()) ? "largest" : "mean";
  const where = block > 1 ? `, the ${what} of ${block} × ${block} weights` : "";
  // How many equal shares a weight is, where colours say that and the page knows the weight to a few per cent.
  const [number, times] = [said(cells, row, column), cells.at(row, column) / cells.shares[row]];
  const isKnown = scaleOf().is_multiple && cells.isAllowed(row, column) && !number.includes(" to ");
  const verb = hasQueries(map) ? ` attends to ${axis(map.column_axis)} ` : `, ${axis(map.column_axis)} `;
  tell(
    `${map.title}${where}: ${axis(map.row_axis)} `,
    element("strong", {}, named(nameOfRow(map, row))),
    verb,
    element("strong", {}, named(nameOfColumn(map, column))),
    ": ",
    element("strong", {}, number),
    isKnown ? `, ${Number(times.toPrecision(2))} × an equal share` : "",
  );
}
