// The report's tables: heads in the order of any measure, and to be copied as CSV with every digit.
import { content, maps, pictures } from "./content.js";
import { byId, element, isolated, named } from "./dom.js";
import { tell } from "./readout.js";
import { change } from "./state.js";

export async function table(panel) {
  for (const each of content.tables) panel.append(shownTable(each));
  if (!content.tables.length) panel.append(element("p", { class: "hint" }, "This report has no tables."));
  return {
    legend: () => "",
    mark: () => tell("Numbers are rounded as shown; a copy as CSV has every digit that the report has."),
    draw: () => {},
  };
}

function shownTable(data) {
  const order = data.rows.map((_, place) => place);
  const body = element("tbody");
  const fill = () => body.replaceChildren(...order.map((place) => lineOf(data, place)));
  const heads = data.columns.map((column, place) => heading(data, column, place, order, fill));
  fill();
  const whole = element("table", { class: "data" }, element("thead", {}, element("tr", {}, ...heads)), body);
  const copy = () => copied(csv(data, order));
  const bar = element("div", { class: "tools" }, element("h2", {}, data.title));
  bar.append(
    element("button", { type: "button", onclick: copy, "aria-label": `copy ${data.title} as CSV` }, "Copy as CSV"),
  );
  const around = { class: "wide", tabindex: 0, role: "region", "aria-label": data.title };
  return element("section", {}, bar, element("div", around, whole));
}

function heading(data, { header, unit }, place, order, fill) {
  const title = unit ? `${header} (${unit})` : header;
  const cell = element("th", { scope: "col", class: data.numeric[place] ? "number" : null });
  if (data.role !== "heads") {
    cell.append(title);
    return cell;
  }
  const sort = () => {
    const falling = cell.getAttribute("aria-sort") !== "descending";
    for (const each of cell.parentElement.children) each.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
    order.sort((a, b) => (falling ? -1 : 1) * compared(data.rows[a][place], data.rows[b][place]) || a - b);
    fill();
  };
  cell.append(element("button", { type: "button", class: "plain", onclick: sort }, title));
  return cell;
}

const compared = (a, b) =>
  typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b), "en") : a - b;

function lineOf(data, place) {
  const [layer, head] = data.rows[place];
  const number = data.role === "heads" ? maps.findIndex((map) => map.layer === layer && map.head === head) : -1;
  const cells = data.shown[place].map((shown, column) => {
    const inner = column === 1 && number >= 0 ? opening(number, shown) : worded(shown);
    return element("td", { class: data.numeric[column] ? "number" : null }, inner);
  });
  return element("tr", {}, ...cells);
}

// A pair of tokens, "2 sat → 1 cat": whatever script they are of, the arrow leads from the left to the right.
function worded(shown) {
  const pair = shown.split(" → ");
  return pair.length === 2 ? element("span", { dir: "ltr" }, named(pair[0]), " → ", named(pair[1])) : isolated(shown);
}

function opening(number, shown) {
  const picture = pictures.findIndex((each) => each.maps.includes(number));
  const open = () => change({ view: "matrix", picture, map: number, heads: [number], query: null, key: null }, true);
  return element(
    "button",
    { type: "button", class: "plain", onclick: open, "aria-label": `open ${maps[number].title}` },
    shown,
  );
}

// RFC 4180, every digit. A spreadsheet takes what begins with one of these signs for a formula.
export function csv({ columns, rows }, order) {
  const text = (cell) => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const written = (cell) => (typeof cell === "string" ? text(cell) : String(cell ?? ""));
  const lines = [
    columns.map(({ header, unit }) => (unit ? `${header} (${unit})` : header)),
    ...order.map((place) => rows[place]),
  ];
  return lines.map((cells) => cells.map((cell) => quoted(written(cell))).join(",") + "\r\n").join("");
}

// Pages that were opened as files may not have the clipboard of today: then the text is shown, to be copied by hand.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    byId("status").textContent = "Copied as CSV.";
  } catch {
    const area = element("textarea", { readonly: true, rows: 6, "aria-label": "the table as CSV" });
    area.value = text;
    byId("status").replaceChildren("Copy this text: ", area);
    area.select();
  }
}
