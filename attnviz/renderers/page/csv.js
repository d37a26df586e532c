const NUMBER = /^[+-]?\d[\d,]*(\.\d+)?$/;

// A table as CSV (RFC 4180), with every digit. A spreadsheet takes what begins with one of these signs for a formula.
export function csv(columns, rows) {
  const text = (cell) => (/^[=+\-@\t\r]/.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell);
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const written = (cell) => (typeof cell === "string" ? text(cell) : String(cell ?? ""));
  const heads = columns.map(({ header, unit }) => (unit ? `${header} (${unit})` : header));
  return [heads, ...rows].map((cells) => `${cells.map((cell) => quoted(written(cell))).join(",")}\r\n`).join("");
}
