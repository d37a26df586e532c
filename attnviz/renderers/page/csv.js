// Tables to be copied as CSV, with every digit.
import { byId, element } from "./dom.js";

const NUMBER = /^[+-]?\d[\d,]*(\.\d+)?$/;

// RFC 4180, every digit. A spreadsheet takes what begins with one of these signs for a formula.
export function csv(columns, rows) {
  const text = (cell) => (/^[=+\-@\t\r]/.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell);
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const written = (cell) => (typeof cell === "string" ? text(cell) : String(cell ?? ""));
  const heads = columns.map(({ header, unit }) => (unit ? `${header} (${unit})` : header));
  return [heads, ...rows].map((cells) => `${cells.map((cell) => quoted(written(cell))).join(",")}\r\n`).join("");
}

export function copyButton(title, made) {
  const attributes = { type: "button", onclick: () => copied(made()), "aria-label": `copy ${title} as CSV` };
  return element("button", attributes, "Copy as CSV");
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
