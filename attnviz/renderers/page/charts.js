// The report's charts, which stand in the page as pictures, and below each its numbers.
import { content } from "./content.js";
import { byId, element, isolated } from "./dom.js";
import { still } from "./readout.js";
import { shownTable } from "./table.js";
import { makers } from "./views.js";

const MOST_ROWS = 1000; // that a browser lays out at once; a copy has all of them
const SMALLEST = 0.4; // of a chart's own size: smaller, nobody could read it, so that it scrolls

const sections = content.charts.map(({ title, columns, charts }) => {
  const grid = element("div", { class: "charts" }, ...charts.map(shownChart));
  grid.style.setProperty("--columns", Math.min(3, columns, charts.length));
  return element("section", {}, element("h2", {}, isolated(title)), grid);
});

makers.charts = async (panel) => {
  panel.append(...sections);
  return still("Below each chart stand its numbers.");
};

const sixDigits = (cell) => String(typeof cell === "number" ? Number(cell.toPrecision(6)) : cell);

function shownChart({ id, title, all, table = all }) {
  const details = element("details", {}, element("summary", {}, "The numbers"));
  const rows = table.rows.slice(0, MOST_ROWS);
  const fill = () => {
    if (!details.open || details.children.length > 1) return;
    const shown = rows.map((row) => row.map(sixDigits));
    details.append(shownTable({ ...table, title, rows, shown, role: "facts" }, all));
    if (rows.length < table.rows.length) {
      details.append(element("p", { class: "hint" }, `The first ${MOST_ROWS} of ${table.rows.length}.`));
    }
  };
  details.addEventListener("toggle", fill);
  const picture = byId(id);
  picture.style.minWidth = `${SMALLEST * picture.getAttribute("width")}px`;
  return element("figure", {}, element("div", { class: "wide", tabindex: 0 }, picture), details);
}
