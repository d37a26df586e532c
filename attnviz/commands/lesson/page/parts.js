// What sections are made of: numbers, strips of components, bars, switches. Knows no section.

import { button, element, write } from "../../../renderers/page/dom.js";

export const MAX_WRITTEN = 4; // components that are written whole, in cells, too

// A real minus sign, and none before a zero; a whole number without digits.
export function decimal(value, digits = Number.isInteger(value) ? 0 : 3) {
  const written = Math.abs(value).toFixed(digits);
  return value < 0 && Number(written) !== 0 ? `−${written}` : written;
}

export function signed(value, digits) {
  const written = decimal(value, digits);
  return Number(written) > 0 ? `+${written}` : written;
}

// Within a product, a minus sign stands in brackets.
export const factor = (value) => (decimal(value).startsWith("−") ? `(${decimal(value)})` : decimal(value));

// All where they are few, else the first ones, written with what stands between them.
export const few = (written, between) =>
  (written.length > MAX_WRITTEN ? [...written.slice(0, 3), "…"] : written).join(between);

export function vector(values) {
  const written = values.map((each) => decimal(each));
  return `(${few(written, ", ")})`;
}

// The components side by side: orange above 0, blue below, as strong as they are large; few are written, on paler ones.
export function strip(name, values, largest) {
  const isWritten = values.length <= MAX_WRITTEN;
  const [step, strongest] = [100 / values.length, isWritten ? 45 : 100];
  const stops = values.map((each, at) => {
    const share = Math.min(strongest, (strongest * Math.abs(each)) / (largest || 1));
    const colour = `color-mix(in srgb, var(--head-${each < 0 ? 0 : 1}) ${share.toFixed(1)}%, var(--paper))`;
    return `${colour} ${(at * step).toFixed(3)}% ${((at + 1) * step).toFixed(3)}%`;
  });
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const label = write("see.strip", { name, d: values.length, low: decimal(low), high: decimal(high) });
  const made = element("span", { class: "strip", role: "img", "aria-label": label });
  if (isWritten)
    made.append(...values.map((each) => element("span", {}, decimal(each, Number.isInteger(each) ? 0 : 2))));
  made.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
  return made;
}

export const largestOf = (vectors) => Math.max(...vectors.flat(2).map(Math.abs));

// A table that may be wider than the screen, and can be moved by the keyboard then. The first cell of a row names it.
export function table(caption, heads, rows) {
  const columns = heads.map((head, at) => element("th", { scope: "col", class: at ? "number" : null }, head));
  const lines = rows.map(([name, ...cells]) => {
    const numbers = cells.map((cell) => element("td", { class: "number" }, cell));
    return element("tr", {}, element("th", { scope: "row" }, name), ...numbers);
  });
  const head = element("thead", {}, element("tr", {}, ...columns));
  const whole = element("table", {}, element("caption", {}, caption), head, element("tbody", {}, ...lines));
  return element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption }, whole);
}

// Parts in the place of others. What had the focus has it again.
export function renew(place, made) {
  const all = () => [...place.querySelectorAll("button, select")];
  const at = all().indexOf(document.activeElement);
  place.replaceChildren(...made);
  all()[at]?.focus();
}

// A switch for each head.
export function switchHeads(place, many, off, toggle) {
  const made = [...Array(many).keys()].map((head) => {
    const isOn = !((off >> head) & 1);
    const label = write("heads.head", { head });
    const state = { class: "button switch-head", role: "switch", "aria-checked": isOn, "aria-label": label };
    return button(String(head), () => toggle(off ^ (1 << head)), state);
  });
  renew(place, made);
}
