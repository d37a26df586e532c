// The atlas of heads: which are found, all of them as points or as a grid, and one of them with all that is known of it.
import { atlas, chosen, findHeads, headCalled, measureOf, short, unnamed, WAYS } from "./atlas-data.js";
import { commandLine, headCard, SHADES } from "./atlas-head.js";
import { axesAround, drawChart, N_COLOURS, textOf } from "./axes.js";
import { inkOn, legend, paintOf, placeOf } from "./colour.js";
import { button, byId, chooser, drawing, dress, element, onDark, roving, tell, write } from "./dom.js";
import { change, makers, state } from "./state.js";

const HINT = "Choose a head; arrows go from one to the next.";
const MOST_FOUND = 24; // heads listed by a search
const [BESIDE, ABOVE, AROUND] = [44, 40, 12]; // pixels beside and above the grid, and around it
const [LARGEST_SIDE, SMALLEST_SIDE, TALLEST] = [44, 16, 600]; // pixels of a cell of the grid, and of all of it
const NONE = "var(--forbidden)"; // of a head without a pattern or a number
const SPREAD = 20; // times the smallest number, from which on the largest asks for a logarithm

const chooseHead = (place) => change({ head: atlas.heads[place].name });

// What is found, the best of it opened.
function look(find) {
  const [best] = findHeads(find);
  change({ find, ...(best ? { head: atlas.heads[best[0]].name } : {}) });
}

// The measures that are seen.
const axesOf = () => {
  const { draw, x, y } = chosen();
  return { kinds: [], measure: [y], points: [x, y] }[draw];
};
const isPoints = () => chosen().draw === "points";
const valuesOf = (title) => measureOf(title).values;
const scaleOfGrid = () => {
  const known = valuesOf(chosen().y).filter((value) => value !== null);
  const [low, high] = [Math.min(...known, 0), Math.max(...known)];
  const ticks = [low, high].map((value, place) => [place, short(value)]);
  return { low, high, ticks, label: `colour: ${chosen().y}`, colours: "lift" };
};

// The pattern that a head is lettered with: one that repeated tokens show is rarer, and says more than the first token.
const patternOf = ({ names }) => names.at(-1)?.[0] ?? "";
const colourOfPattern = (pattern) => `var(--head-${Object.keys(atlas.letters).indexOf(pattern) % N_COLOURS})`;

// All heads at once: layers × heads by what they do or by one measure, or as points by two measures.
// `found`: the places that a search has found, of which the others turn pale; null: nothing is searched for.
function drawHeads(part, width, found) {
  const focused = part.contains(document.activeElement) ? document.activeElement.id : null;
  const svg = isPoints() ? pointsOf(width) : gridOf(width);
  svg.classList.add("all");
  for (const point of svg.querySelectorAll(".point")) {
    const { name, names } = atlas.heads[point.dataset.place];
    const numbers = axesOf().map((title) => `${title} ${short(valuesOf(title)[point.dataset.place])}`);
    const label = [`head ${name}`, ...names.map((each) => each.join(" ")), ...numbers].join(", ");
    point.append(drawing("title", {}, label));
    point.ariaPressed = chosen().head === name;
    dress(point, { role: "button", id: `point-${point.dataset.place}`, "aria-label": label });
  }
  for (const each of svg.querySelectorAll("[data-place]")) {
    each.classList.toggle("pale", found !== null && !found.has(Number(each.dataset.place)));
  }
  const choose = ({ target }) => {
    const point = target.closest("[data-place]");
    if (point) chooseHead(Number(point.dataset.place));
  };
  svg.addEventListener("click", choose);
  svg.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(event);
  });
  const [x_axis, y_axis] = [chosen().x, chosen().y].map(
    (title) => title + (title.includes(measureOf(title).unit) ? "" : ` (${measureOf(title).unit})`),
  );
  part.replaceChildren(...(isPoints() ? axesAround({ x_axis, y_axis }, svg) : [svg]));
  const nColumns = 1 + Math.max(...atlas.heads.map(({ head }) => head));
  roving(svg, ".point", () => (isPoints() ? 1 : nColumns));
  if (focused) document.getElementById(focused)?.focus();
}

// Those of the rarest patterns last, so that they lie above the others.
function pointsOf(width) {
  const { x, y } = chosen();
  const [across, up] = [x, y].map(valuesOf);
  const patterns = ["", ...Object.keys(atlas.letters)];
  const rows = atlas.heads.map((head, place) => {
    const group = patternOf(head);
    return { x: across[place], y: up[place], group, letter: atlas.letters[group], label: head.name, place };
  });
  rows.sort((a, b) => patterns.indexOf(a.group) - patterns.indexOf(b.group));
  const scales = { x: growthOf(across), y: growthOf(up) };
  const svg = drawChart({ kind: "point", rows, groups: patterns, scales }, width);
  return dress(svg, { role: "group", "aria-label": `heads, by ${x} and ${y}` });
}

function growthOf(values) {
  const [above, most] = [Math.min(...values.filter((value) => value > 0)), Math.max(...values)];
  return Math.min(...values) >= 0 && most > SPREAD * above ? "log" : "linear";
}

function gridOf(width) {
  const [layers, heads] = ["layer", "head"].map((name) => [...new Set(atlas.heads.map((each) => each[name]))]);
  const fits = Math.min((width - BESIDE - AROUND) / heads.length, TALLEST / layers.length);
  const side = Math.max(SMALLEST_SIDE, Math.min(LARGEST_SIDE, fits));
  const size = {
    width: Math.round(BESIDE + side * heads.length + AROUND),
    height: Math.round(ABOVE + side * layers.length + AROUND),
  };
  const what = chosen().draw === "measure" ? chosen().y : "what they do";
  const label = `layers × heads, coloured by ${what}`;
  const svg = drawing("svg", { class: "chart", ...size, role: "group", "aria-label": label });
  for (const [row, layer] of layers.entries()) {
    svg.append(textOf(BESIDE - 6, ABOVE + (row + 0.5) * side + 4, layer, "end"));
  }
  for (const [column, head] of heads.entries()) {
    svg.append(textOf(BESIDE + (column + 0.5) * side, ABOVE - 6, head, "middle"));
  }
  svg.append(textOf(BESIDE, 14, "head →", "start"), textOf(2, ABOVE - 6, "layer ↓", "start"));
  for (const [place, each] of atlas.heads.entries()) {
    const [x, y] = [BESIDE + heads.indexOf(each.head) * side, ABOVE + layers.indexOf(each.layer) * side];
    const pattern = patternOf(each);
    const { fill, ink } = lookOfCell(place, pattern);
    const cell = drawing("rect", { x, y, width: side - 1, height: side - 1, style: { fill } });
    const letter = textOf(x + (side - 1) / 2, y + (side - 1) / 2 + 4, atlas.letters[pattern] ?? "", "middle", "letter");
    svg.append(drawing("g", { class: "point", "data-place": place }, cell, dress(letter, { style: { fill: ink } })));
  }
  return svg;
}

// By what it does, the colour of that; by a measure, its shade.
function lookOfCell(place, pattern) {
  if (chosen().draw !== "measure") return { fill: pattern ? colourOfPattern(pattern) : NONE, ink: "var(--paper)" };
  const value = valuesOf(chosen().y)[place];
  if (value === null) return { fill: NONE, ink: "var(--ink)" };
  const shade = placeOf(value, scaleOfGrid());
  return { fill: paintOf(scaleOfGrid())(shade), ink: inkOn(shade, scaleOfGrid()) };
}

makers.atlas = (panel) => {
  const titles = atlas.measures.map(({ title }) => [title, title]);
  const choices = [
    ["Heads", "draw", Object.entries(WAYS)],
    ["Measure", "y", titles],
    ["Across", "x", titles],
  ];
  const choosers = choices.map(([label, name, options]) =>
    chooser(label, options, chosen()[name], (value) => change({ [name]: value })),
  );
  const placeholder = "18.6, previous token, film …";
  const search = element("input", { type: "search", placeholder, oninput: () => look(search.value) });
  byId("choosers").append(...choosers, element("label", { class: "chooser" }, element("span", {}, "Find"), search));
  const patterns = element("div", { class: "tools", role: "group", "aria-label": "what heads are called" });
  patterns.append(...chipsOfPatterns());
  const [plot, said] = [element("div", { class: "wide" }), element("p", { class: "hint" })];
  const key = element("div");
  const questions = atlas.commands.filter(([, command]) => !command.includes("{query}"));
  panel.append(patterns, plot, said, ...questions.map(([title, command]) => commandLine(title, command)));
  let shown = "";
  const show = () => {
    const { draw, x, y, head } = chosen();
    if (search.value !== state.find) search.value = state.find;
    for (const [place, value] of [draw, y, x].entries()) {
      choosers[place].hidden = place > axesOf().length;
      choosers[place].lastChild.value = value;
    }
    key.replaceChildren(...(draw === "measure" ? [legend(scaleOfGrid())] : []), legend(SHADES));
    const wanted = `${head} ${onDark.matches}`; // shades are others on paper, as that of a print is
    if (shown !== wanted) byId("beside").replaceChildren(headCard(headCalled(head)));
    shown = wanted;
    for (const moment of document.querySelectorAll(".moment")) moment.draw(); // what is printed has no next frame
    const found = findHeads(state.find);
    drawHeads(plot, panel.clientWidth, found.length ? new Set(found.map(([place]) => place)) : null);
    listFound(patterns, found);
    const axes = axesOf().map((title) => `${title[0].toUpperCase()}${title.slice(1)}: ${measureOf(title).about}.`);
    tell();
    said.textContent = [HINT, ...axes].join(" ");
  };
  show();
  return { legend: () => key, mark: show, draw: show };
};

function listFound(patterns, found) {
  const asked = state.find;
  for (const chip of patterns.querySelectorAll("button")) {
    chip.setAttribute("aria-pressed", chip.dataset.pattern === asked);
  }
  const chips = found.slice(0, MOST_FOUND).map(([place, why]) => {
    const { name } = atlas.heads[place];
    const label = [element("b", {}, name), why ? ` ${why}` : ""];
    return button(label, () => chooseHead(place), { "aria-pressed": chosen().head === name });
  });
  const none = asked.trim() && !found.length ? write("ui.nothing_found", { asked }) : "";
  byId("found").replaceChildren(...chips, none);
}

function chipsOfPatterns() {
  const chips = Object.entries(atlas.letters).map(([pattern, letter]) => {
    const n = atlas.heads.filter(({ names }) => names.some(([name]) => name === pattern)).length;
    const sign = element("b", { style: { color: colourOfPattern(pattern) } }, letter);
    const find = () => look(state.find === pattern ? "" : pattern);
    return button([sign, ` ${pattern} · ${n}`], find, { "data-pattern": pattern });
  });
  const none = element("p", { class: "hint" }, `Heads: ${unnamed("none follows a single pattern beyond chance")}.`);
  return chips.length ? chips : [none];
}
