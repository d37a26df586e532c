// What sections are made of: numbers, strips of components, bars, choices. Knows no section.

import { element } from "../../../renderers/page/dom.js";
import { write } from "./phrases.js";

// A real minus sign, and none before a zero.
export function decimal(value, digits = 3) {
  if (value === -Infinity) return "−∞";
  const written = Math.abs(value).toFixed(digits);
  return value < 0 && Number(written) !== 0 ? `−${written}` : written;
}

export function signed(value, digits) {
  const written = decimal(value, digits);
  return Number(written) > 0 ? `+${written}` : written;
}

// Within a product, a minus sign stands in brackets.
export const factor = (value) => (decimal(value).startsWith("−") ? `(${decimal(value)})` : decimal(value));

export function vector(values, shown = 4) {
  const few = values.slice(0, shown).map((each) => decimal(each));
  return `(${[...few, ...(values.length > shown ? ["…"] : [])].join(", ")})`;
}

// The components side by side: orange above 0, blue below, as strong as they are large.
export function strip(name, values, largest) {
  const step = 100 / values.length;
  const stops = values.map((each, at) => {
    const share = Math.min(100, (100 * Math.abs(each)) / (largest || 1));
    const colour = `color-mix(in srgb, var(--${each < 0 ? "below" : "above"}) ${share.toFixed(1)}%, var(--ground))`;
    return `${colour} ${(at * step).toFixed(3)}% ${((at + 1) * step).toFixed(3)}%`;
  });
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const label = write("hand.strip", { name, d: values.length, low: decimal(low), high: decimal(high) });
  const made = element("span", { class: "strip", role: "img", "aria-label": label });
  made.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
  return made;
}

export const largestOf = (...vectors) => Math.max(...vectors.flat(2).map(Math.abs));

export function bar(share) {
  const filled = element("span", {});
  filled.style.inlineSize = `${(100 * share).toFixed(2)}%`;
  return element("span", { class: "bar", "aria-hidden": "true" }, filled);
}

// A table that may be wider than the screen, and can be moved by the keyboard then.
export function table(caption, heads, rows, attributes = {}) {
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      attributes,
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...rows),
    ),
  );
}

export function row(head, ...cells) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, head),
    ...cells.map((cell) => element("td", {}, ...[cell].flat())),
  );
}

// New content in the place of old; what had the focus has it again.
export function redraw(place, ...content) {
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.at : undefined;
  place.replaceChildren(...content);
  if (focused !== undefined) place.querySelector(`[data-at="${CSS.escape(focused)}"]`)?.focus();
}

export function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, ...[label].flat());
}
