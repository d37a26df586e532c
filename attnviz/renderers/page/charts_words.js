// The numbers of a chart as a table, made when it is asked for.
import { exactly } from "./charts_axes.js";
import { copyButton, csv } from "./csv.js";
import { element, isolated } from "./dom.js";

const MOST_ROWS = 1000; // that a browser lays out at once; a copy has all of them

export function numbersOf(chart) {
  const details = element("details", {}, element("summary", {}, "The numbers"));
  const fill = () => details.open && details.children.length === 1 && details.append(...numbersTable(chart));
  details.addEventListener("toggle", fill);
  return details;
}

function numbersTable(chart) {
  const { columns, rows, all, allColumns = columns } = chart.table();
  const written = () =>
    csv(
      { columns: allColumns.map((header) => ({ header })), rows: all },
      all.map((_, place) => place),
    );
  const cell = (value) => {
    const isNumber = typeof value === "number";
    return element("td", { class: isNumber ? "number" : null }, isNumber ? exactly(value) : isolated(value ?? ""));
  };
  const heads = columns.map((header) => element("th", { scope: "col" }, isolated(header)));
  const lines = rows.slice(0, MOST_ROWS).map((row) => element("tr", {}, ...row.map(cell)));
  const table = element(
    "table",
    { class: "data" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...lines),
  );
  const around = { class: "wide", tabindex: 0, role: "region", "aria-label": `numbers of ${chart.data.title}` };
  const parts = [
    element("div", { class: "tools" }, copyButton(chart.data.title, written)),
    element("div", around, table),
  ];
  if (rows.length > MOST_ROWS) parts.push(element("p", { class: "hint" }, `The first ${MOST_ROWS} of ${rows.length}.`));
  return parts;
}
