// The report's charts, and below each its numbers.
import { axesAround, drawChart, isDrawn, keyOf, looksOf, quartilesOf } from "./axes.js";
import { content, dress, element, isolated, still, write } from "./dom.js";
import { makers } from "./state.js";
import { shownTable } from "./tables.js";

const MOST_ROWS = 1000; // that a browser lays out at once; a copy has all of them
const HEADERS = { group: write("ui.of"), label: write("ui.point") }; // of columns, as a reader knows them
const SUMMARY = write("ui.summary").split("|");

makers.charts = (panel) => {
  const drawers = [];
  for (const { title, columns, charts } of content.charts) {
    const named = ({ columns, rows }) =>
      rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
    const all = charts.map((chart) => ({ ...chart, cells: chart.rows, rows: named(chart) }));
    const looks = looksOf(all);
    const grid = element("div", { class: "charts", style: { "--columns": Math.min(3, columns, charts.length) } });
    for (const chart of all) {
      const lost = chart.rows.filter((row) => !isDrawn(row)).length;
      const missing = lost ? element("p", { class: "hint" }, write("ui.lost", { lost })) : "";
      const heading = chart.title && chart.title !== title ? element("h3", {}, isolated(chart.title)) : "";
      const place = element("div", { class: "wide", tabindex: 0 });
      drawers.push(() => place.replaceChildren(dress(drawChart(chart, place.clientWidth, looks), inWordsOf(chart))));
      grid.append(element("figure", {}, heading, ...axesAround(chart, place), missing, numbersOfChart(chart)));
    }
    const hint = element("p", { class: "hint" }, all.some(({ kind }) => kind === "box") ? write("ui.box") : "");
    panel.append(element("section", {}, element("h2", {}, isolated(title)), keyOf(looks), grid, hint));
  }
  const draw = () => {
    for (const each of drawers) each();
  };
  draw();
  return { ...still(write("ui.below_charts")), draw };
};

// What a chart says to somebody who does not see it.
function inWordsOf({ title, x_axis, y_axis, rows }) {
  const groups = [...new Set(rows.map(({ group }) => group))].filter(Boolean).join(", ");
  const said = write(groups ? "ui.chart_of" : "ui.chart", { title, x_axis, y_axis, n: rows.length, groups });
  return { role: "img", "aria-label": said.trim() };
}

const tableFrom = (headers, rows) => {
  const isNumber = (_, place) => rows.length > 0 && rows.every((row) => typeof row[place] === "number");
  return { columns: headers.map((header) => ({ header, unit: "" })), numeric: headers.map(isNumber), rows };
};

// All numbers of a chart, to be copied; and what of them can be read: of samples a line for each.
function tablesOf({ kind, columns, x_axis, y_axis, names, cells, rows }) {
  const headers = columns.map((name) => ({ ...HEADERS, x: x_axis, y: y_axis })[name] ?? name);
  const named = (cell, place) => (names.length && columns[place] === "x" ? names[cell] : cell);
  const table = tableFrom(
    headers,
    cells.map((row) => row.map(named)),
  );
  if (kind !== "box") return { all: table, table };
  const samples = [...Map.groupBy(rows, ({ x }) => x)].map(([x, of]) => {
    const known = of.filter(isDrawn).map(({ y }) => y);
    return [of[0].group, names[x], of.length, ...(known.length ? quartilesOf(known) : Array(5).fill(""))];
  });
  return { all: table, table: tableFrom([HEADERS.group, x_axis, ...SUMMARY], samples) };
}

function numbersOfChart(chart) {
  const details = element("details", {}, element("summary", {}, write("ui.numbers")));
  const fill = () => {
    const { all, table } = tablesOf(chart);
    const rows = table.rows.slice(0, MOST_ROWS);
    const written = (cell) => String(typeof cell === "number" ? Number(cell.toPrecision(6)) : (cell ?? "–"));
    const shown = rows.map((row) => row.map(written));
    details.append(shownTable({ ...table, title: chart.title, rows, shown, role: "facts" }, all));
    if (rows.length < table.rows.length) {
      details.append(element("p", { class: "hint" }, write("ui.first_rows", { n: MOST_ROWS, all: table.rows.length })));
    }
  };
  details.addEventListener("toggle", fill, { once: true });
  return details;
}
