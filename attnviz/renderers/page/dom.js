// Elements made from names and texts. A text becomes a text node, whatever it holds: a token is never markup.

// An element of HTML or of a drawing with its attributes, its looks as properties of a style, and what it listens to.
export function dress(made, attributes, ...children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const look of Object.entries(value)) made.style.setProperty(...look);
    else if (typeof value === "boolean" && !name.startsWith("aria-")) made.toggleAttribute(name, value);
    else if (value !== null) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

export const element = (tag, attributes = {}, ...children) =>
  dress(document.createElement(tag), attributes, ...children);

export const drawing = (tag, attributes = {}, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, ...children);

export const button = (label, onclick, attributes = {}) =>
  element("button", { type: "button", onclick, ...attributes }, ...[label].flat());

export const hasRoomBeside = matchMedia("screen and (min-width: 60rem)");

export const byId = (id) => document.getElementById(id);

export const content = JSON.parse(byId("content").textContent);

const PARTS = /\{(\w+)\}|\*\*(.+?)\*\*|`(.+?)`/g;

// A sentence of the page's own in its language, with numbers and tokens in their places: nodes and texts.
export const say = (name, values = {}) => fill(content.words[name], values);

function fill(sentence, values) {
  const found = [];
  let end = 0;
  for (const part of sentence.matchAll(PARTS)) {
    found.push(sentence.slice(end, part.index));
    end = part.index + part[0].length;
    if (part[1]) found.push(...[values[part[1]]].flat());
    else if (part[2]) found.push(element("strong", {}, ...fill(part[2], values)));
    else found.push(element("code", {}, part[3]));
  }
  return [...found, sentence.slice(end)].filter((each) => each !== "");
}

// The same as a plain text, where no element may stand.
export const write = (name, values = {}) => element("span", {}, ...say(name, values)).textContent;

// The line that says in words what is pointed at.
export function tell(...parts) {
  byId("readout").replaceChildren(...parts);
}

// A view without a legend, that is drawn once.
export const still = (hint) => ({ legend: () => "", mark: () => tell(hint), draw: () => {} });

// A label keeps its direction to itself, so that an Arabic token does not turn the line around it.
export const isolated = (text) => element("bdi", {}, text);

// A position and its token: the position stays before it, also in a line that runs from right to left.
export function named(text) {
  const [, position = "", label] = /^([\d–]+ )?(.*)$/su.exec(text);
  return element("span", {}, position, isolated(label));
}

export function chooser(label, options, chosen, onchange) {
  const select = element("select", { onchange: () => onchange(options[select.selectedIndex][0]) });
  for (const [value, text] of options) select.append(element("option", { value, selected: value === chosen }, text));
  return element("label", { class: "chooser" }, element("span", {}, label), select);
}

// A tint of the paper, from none at 0 to all at 1, so that the word stays legible.
export const tint = (share, colour = "var(--tint)") =>
  `color-mix(in srgb, ${colour} ${(100 * share).toFixed(1)}%, transparent)`;

// Of the two that a colour of the style has, which are on paper and on a dark ground: a canvas knows no light-dark().
export const onDark = matchMedia("screen and (prefers-color-scheme: dark)");
export function colourOf(name) {
  const [ofPaper, ofDark] = getComputedStyle(document.documentElement).getPropertyValue(name).match(/#\w+/g);
  return onDark.matches ? ofDark : ofPaper;
}

// Once for each frame, however often it is planned in it.
export function nextFrame(planner, act) {
  planner.planned ??= requestAnimationFrame(() => {
    planner.planned = undefined;
    act();
  });
}

// One stop for Tab in a group of many: arrows move within it.
export function roving(group, selector, columns = () => 1) {
  const all = () => [...group.querySelectorAll(selector)];
  const rest = (here) => {
    for (const each of all()) each.tabIndex = each === here ? 0 : -1;
  };
  group.addEventListener("focusin", (event) => event.target.matches(selector) && rest(event.target));
  group.addEventListener("keydown", (event) => {
    const items = all();
    const at = items.indexOf(document.activeElement);
    const forward = getComputedStyle(group).direction === "rtl" ? -1 : 1;
    const steps = { ArrowRight: forward, ArrowLeft: -forward, ArrowDown: columns(), ArrowUp: -columns() };
    const ends = { Home: 0, End: items.length - 1 };
    const next = event.key in ends ? ends[event.key] : at + (steps[event.key] ?? NaN);
    if (at < 0 || !items[next]) return;
    event.preventDefault();
    items[next].focus();
  });
  const items = all();
  rest(items.find((each) => each.matches("[aria-current], [aria-selected=true], [aria-pressed=true]")) ?? items[0]);
}

// A page that was opened as a file may have no clipboard: then the text is shown, to be copied by hand.
export function copyButton(label, name, textOf) {
  const copy = async () => {
    const text = textOf();
    try {
      await navigator.clipboard.writeText(text);
      byId("status").textContent = write("ui.copied");
      copying.textContent = write("ui.copied"); // what says so may be out of sight
    } catch {
      const area = element("textarea", { readonly: true, rows: 6, "aria-label": write("ui.to_copy") });
      area.value = text;
      byId("status").replaceChildren(write("ui.copy_this"), area);
      area.select();
    }
  };
  const copying = button(label, copy, { "aria-label": name });
  return copying;
}

// What is drawn before a font is there is not drawn anew when it comes: no canvas, and not every text.
export const loadFonts = () => Promise.all([...document.fonts].map((each) => each.load()));
