// The atlas of heads: which are found, all of them as points or as a grid, and one or two of them beside each other.
import { atlas, findHeads, headCalled, measureCalled, unnamed } from "./atlas-data.js";
import { commandLine, headCard, SHADES } from "./atlas-head.js";
import { axesOf, colourOfPattern, HeadPlot, scaleOfGrid } from "./atlas-plot.js";
import { chipsOfHeads, nothingFound } from "./chips.js";
import { groundOf, legend, paintOf } from "./colour.js";
import { chooser, element } from "./dom.js";
import { change, state } from "./state.js";
import { links, makers } from "./views.js";

const HINT = "Choose a head; arrows go from one to the next.";
const WAYS = { kinds: "by what they do", measure: "by a measure", points: "by two measures" };

// Measures and heads by their names: a link may be of another survey, and what is not there is left out.
state.atlas = { x: "", y: "", draw: "kinds", heads: [], find: "", isPinned: false };

links.atlas = {
  write(parts) {
    const { x, y, draw, heads, find } = state.atlas;
    for (const [name, value] of Object.entries({ draw, x, y, heads: heads.join(","), find }))
      if (value) parts.set(name, value);
  },
  read(parts) {
    const words = (name) => parts.get(name) ?? "";
    const heads = words("heads").split(",").filter(Boolean).slice(0, 2);
    const draw = words("draw") in WAYS ? words("draw") : "kinds";
    return { atlas: { x: words("x"), y: words("y"), draw, heads, find: words("find"), isPinned: false } };
  },
};

const hasNames = () => Object.keys(atlas.letters).length > 0;
const alter = (changes) => change({ atlas: { ...state.atlas, ...changes } });

function chooseHead(place) {
  const { heads, isPinned } = state.atlas;
  const name = atlas.heads[place].name;
  if (heads.includes(name)) return;
  alter({ heads: isPinned || heads.length > 1 ? [heads[0], name] : [name], isPinned: false });
}

// What is found, the best of it opened, unless two heads are held side by side.
function look(find) {
  const { heads, isPinned } = state.atlas;
  const [best] = findHeads(find);
  alter({ find, heads: !best || isPinned || heads.length > 1 ? heads : [atlas.heads[best[0]].name] });
}

makers.atlas = (panel) => {
  const page = new AtlasPage(panel);
  return { legend: () => "", mark: () => page.show(), draw: () => page.show() };
};

class AtlasPage {
  constructor(panel) {
    this.controls = element("div", { class: "tools" });
    this.search = element("input", { type: "search", placeholder: "18.6, previous token, film …" });
    this.search.addEventListener("input", () => look(this.search.value));
    const label = element("label", { class: "chooser" }, element("span", {}, "Find"), this.search);
    this.found = element("div", { class: "chips", role: "group", "aria-label": "heads that are found" });
    this.patterns = element("div", { class: "chips", role: "group", "aria-label": "what heads are called" });
    this.patterns.append(...chipsOfPatterns());
    this.said = element("p", { class: "hint" });
    this.key = element("div", {});
    this.plot = new HeadPlot(chooseHead);
    this.left = element("div", { class: "all-heads" }, this.patterns, this.plot.part, this.said, this.key);
    this.cards = element("div", { class: "cards" });
    const questions = atlas.commands.filter(([, command]) => !command.includes("{query}"));
    const asking = questions.map(([title, command]) => commandLine(title, command));
    panel.className = "atlas";
    panel.append(
      element("div", { class: "tools" }, this.controls, label),
      this.found,
      this.left,
      this.cards,
      ...asking,
    );
    this.show();
  }

  show() {
    const [x, y] = atlas.axes.map((place) => atlas.measures[place].title);
    const known = (title, other) => (measureCalled(title) < 0 ? other : title);
    const heads = state.atlas.heads.filter((name) => headCalled(name) >= 0);
    Object.assign(state.atlas, { x: known(state.atlas.x, x), y: known(state.atlas.y, y) });
    state.atlas.heads = heads.length ? heads : [atlas.first];
    if (!hasNames() && state.atlas.draw === "kinds") state.atlas.draw = "measure";
    if (this.search.value !== state.atlas.find) this.search.value = state.atlas.find;
    this.showControls();
    const shades = legend(SHADES, paintOf(SHADES), "shade in a moment: × an equal share", false);
    const colours = () => legend(scaleOfGrid(), paintOf(scaleOfGrid()), `colour: ${state.atlas.y}`, false);
    this.key.replaceChildren(...(state.atlas.draw === "measure" ? [colours()] : []), shades);
    this.showCards(); // two heads leave less room for all of them
    this.plot.draw(this.left.clientWidth);
    const { close } = this.plot.svg.dataset;
    const unlabelled = close > 0 ? [`Too close to others for a number: ${close}.`] : [];
    const aboutOf = (title) => atlas.measures[measureCalled(title)].about;
    const axes = axesOf().map((title) => `${title[0].toUpperCase()}${title.slice(1)}: ${aboutOf(title)}.`);
    this.said.textContent = [HINT, ...unlabelled, ...axes].join(" ");
    this.markFound();
  }

  showControls() {
    const focused = [...this.controls.querySelectorAll("select")].indexOf(document.activeElement);
    const titles = atlas.measures.map(({ title }) => [title, title]);
    const of = (label, name, options = titles) =>
      chooser(label, options, state.atlas[name], (value) => alter({ [name]: value }));
    const axes = { kinds: [], measure: [of("Colour", "y")], points: [of("Across", "x"), of("Up", "y")] };
    this.controls.replaceChildren(
      of("Heads", "draw", Object.entries(WAYS).slice(hasNames() ? 0 : 1)),
      ...axes[state.atlas.draw],
    );
    this.controls.querySelectorAll("select")[focused]?.focus();
  }

  markFound() {
    const asked = state.atlas.find;
    const found = findHeads(asked);
    for (const chip of this.patterns.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", chip.dataset.pattern === asked);
    }
    const chips = found.map(([place, why]) => {
      const { name } = atlas.heads[place];
      return { name, why, isChosen: state.atlas.heads.includes(name), choose: () => chooseHead(place) };
    });
    const none = asked.trim() && !found.length ? [nothingFound(asked, "a head as 18.6, a pattern, or a word")] : [];
    this.found.replaceChildren(...chipsOfHeads(chips), ...none);
    this.plot.mark(found.length ? new Set(found.map(([place]) => place)) : null);
  }

  showCards() {
    const { heads, isPinned } = state.atlas;
    const now = [...heads, isPinned, groundOf()].join(); // shades are others on paper, as that of a print is
    if (this.shown === now) return;
    this.shown = now;
    const cards = heads.map((name) => headCard(headCalled(name), this.buttons(name)));
    const second = element("p", { class: "hint card" }, "Choose another head to stand here.");
    this.cards.replaceChildren(...cards, ...(isPinned && heads.length < 2 ? [second] : []));
  }

  buttons(name) {
    const { heads, isPinned } = state.atlas;
    const [text, act] =
      heads.length > 1
        ? ["Close", () => alter({ heads: heads.filter((each) => each !== name) })]
        : [isPinned ? "Alone" : "Side by side …", () => alter({ isPinned: !isPinned })];
    const press = () => {
      act();
      this.cards.querySelector("button")?.focus();
    };
    return [element("button", { type: "button", onclick: press, "aria-label": `${text}: head ${name}` }, text)];
  }
}

function chipsOfPatterns() {
  const chips = Object.entries(atlas.letters).map(([pattern, letter]) => {
    const n = atlas.heads.filter(({ names }) => names.some(([name]) => name === pattern)).length;
    const onclick = () => look(state.atlas.find === pattern ? "" : pattern);
    const attributes = { type: "button", class: "chip", "data-pattern": pattern, onclick };
    const chip = element("button", attributes, element("b", {}, letter), ` ${pattern} · ${n}`);
    chip.style.setProperty("--line", colourOfPattern(pattern));
    return chip;
  });
  const none = element("p", { class: "hint" }, `Heads: ${unnamed("none follows a single pattern beyond chance")}.`);
  return chips.length ? chips : [none];
}
