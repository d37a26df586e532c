// The report's tables: rows in the order of any column, and to be copied as CSV with every digit.
import { maps, pictures } from "./content.js";
import { button, content, copyButton, element, isolated, named, still, write } from "./dom.js";
import { change, makers } from "./state.js";

const SORTED = ["heads", "facts"]; // rows of these roles are alike, and so have an order
const NUMBER = /^[+-]?\d[\d,]*(\.\d+)?$/;

makers.table = (panel) => {
  for (const each of content.tables) panel.append(shownTable(each));
  return still(write("ui.rounded"));
};

// `all` is what a copy has; the rows shown, in their order, unless something else is said.
export function shownTable(data, all = null) {
  const order = data.rows.map((_, place) => place);
  const body = element("tbody");
  const fill = () => body.replaceChildren(...order.map((place) => lineOf(data, place)));
  const ordered = () => order.map((place) => data.rows[place]);
  const heads = data.columns.map((column, place) => heading(data, column, place, order, fill));
  fill();
  const whole = element("table", { class: "data" }, element("thead", {}, element("tr", {}, ...heads)), body);
  const bar = element("div", { class: "tools" }, element("h2", {}, data.title));
  const copied = () => (all ? csv(all.columns, all.rows) : csv(data.columns, ordered()));
  bar.append(copyButton(write("ui.csv"), `${write("ui.csv")}: ${data.title}`, copied));
  const picture = data.picture ? element("img", { src: data.picture, alt: data.title }) : "";
  const around = { class: "wide", tabindex: 0, role: "region", "aria-label": data.title };
  return element("section", {}, bar, data.thumbs ? tilesOf(data) : "", element("div", around, picture, whole));
}

// A row as a tile: its picture, its name, and what there is to know of it, in a red frame where it failed.
function tilesOf({ rows, links, thumbs, role }) {
  const tiles = rows.map((row, place) => {
    const [name, command, said] = row.length > 1 ? [row[0], ` ${row[1]} `, row.at(-1)] : [row[0], "", ""];
    const picture = thumbs[place] ? element("img", { src: thumbs[place], alt: "" }) : "";
    const inner = [picture, element("strong", {}, isolated(name)), command, isolated(said)];
    const look = { class: said.startsWith("failed: ") ? "tile failed" : "tile" };
    return links?.[place] ? element("a", { ...look, href: links[place] }, ...inner) : element("div", look, ...inner);
  });
  return element("div", { class: role === "compared" ? "tiles large" : "tiles" }, ...tiles);
}

function heading(data, { header, unit }, place, order, fill) {
  const title = isolated(unit ? `${header} (${unit})` : header);
  const cell = element("th", { scope: "col", class: data.numeric[place] ? "number" : null });
  if (!SORTED.includes(data.role) || data.rows.length < 2 || !header) {
    cell.append(title);
    return cell;
  }
  const sort = () => {
    const now = cell.getAttribute("aria-sort");
    const falling = now ? now !== "descending" : data.numeric[place]; // words from A, numbers from the largest
    for (const each of cell.parentElement.children) each.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
    order.sort((a, b) => compared(data.rows[a][place], data.rows[b][place], falling ? -1 : 1) || a - b);
    fill();
  };
  cell.append(button(title, sort, { class: "plain" }));
  return cell;
}

const isMissing = (cell) => cell === null || cell === "" || cell === "…";

// What is missing comes last, whichever way; numbers within words in the order of numbers: job-2 before job-10.
function compared(a, b, sign) {
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  const words = typeof a === "string" || typeof b === "string";
  return sign * (words ? String(a).localeCompare(String(b), "en", { numeric: true }) : a - b);
}

function lineOf(data, place) {
  const [layer, head] = data.rows[place];
  const number = data.role === "heads" ? maps.findIndex((map) => map.layer === layer && map.head === head) : -1;
  const picture = pictures.findIndex((each) => each.maps.includes(number));
  const open = () => change({ view: "matrix", picture, map: number, query: null, key: null }, true);
  const opening = { class: "plain", "aria-label": write("ui.open", { map: maps[number]?.title }) };
  const cells = data.shown[place].map((shown, column) => {
    const words = data.role === "facts" ? isolated(shown) : worded(shown);
    const inner = column === 1 && number >= 0 ? button(shown, open, opening) : words;
    const led = column === 0 ? leading(data.links?.[place], inner) : inner;
    return element("td", { class: data.numeric[column] ? "number" : null }, led);
  });
  return element("tr", {}, ...cells);
}

// An address that Python has found to be relative, and encoded: it leads to a file beside the page or below.
const leading = (address, inner) => (address && inner.textContent ? element("a", { href: address }, inner) : inner);

// A pair of tokens, "2 sat → 1 cat": whatever script they are of, the arrow leads from the left to the right.
function worded(shown) {
  const pair = shown.split(" → ");
  return pair.length === 2 ? element("span", { dir: "ltr" }, named(pair[0]), " → ", named(pair[1])) : isolated(shown);
}

// A table as CSV (RFC 4180), with every digit. A spreadsheet takes what begins with one of these signs for a formula.
function csv(columns, rows) {
  const text = (cell) => (/^[=+\-@\t\r]/.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell);
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const written = (cell) => (typeof cell === "string" ? text(cell) : String(cell ?? ""));
  const heads = columns.map(({ header, unit }) => (unit ? `${header} (${unit})` : header));
  return [heads, ...rows].map((cells) => `${cells.map((cell) => quoted(written(cell))).join(",")}\r\n`).join("");
}
