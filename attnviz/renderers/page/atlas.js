// The atlas of heads: which are found, all of them as points or as a grid, and one or two of them beside each other.
import { atlas, chosen, findHeads, headCalled, measureCalled, unnamed, WAYS } from "./atlas-data.js";
import { commandLine, headCard, SHADES } from "./atlas-head.js";
import { axesOf, colourOfPattern, HeadPlot, scaleOfGrid } from "./atlas-plot.js";
import { chipsOfHeads, nothingFound } from "./chips.js";
import { legend } from "./colour.js";
import { byId, chooser, element, onDark } from "./dom.js";
import { tell } from "./readout.js";
import { change, state } from "./state.js";
import { makers } from "./views.js";

const HINT = "Choose a head; arrows go from one to the next.";

function chooseHead(place) {
  const { heads, isPinned } = chosen();
  const { name } = atlas.heads[place];
  if (!heads.includes(name)) change({ heads: isPinned ? `${heads[0]},${name}` : name });
}

// What is found, the best of it opened, unless two heads are held side by side.
function look(find) {
  const [best] = findHeads(find);
  const isOpened = best && !chosen().isPinned;
  change({ find, ...(isOpened ? { heads: atlas.heads[best[0]].name } : {}) });
}

makers.atlas = (panel) => {
  const page = new AtlasPage(panel);
  return { legend: () => page.key, mark: () => page.show(), draw: () => page.show() };
};

class AtlasPage {
  constructor(panel) {
    const titles = atlas.measures.map(({ title }) => [title, title]);
    const choices = [
      ["Heads", "draw", Object.entries(WAYS)],
      ["Measure", "y", titles],
      ["Across", "x", titles],
    ];
    this.choosers = choices.map(([label, name, options]) =>
      chooser(label, options, chosen()[name], (value) => change({ [name]: value })),
    );
    this.search = element("input", { type: "search", placeholder: "18.6, previous token, film …" });
    this.search.addEventListener("input", () => look(this.search.value));
    const label = element("label", { class: "chooser" }, element("span", {}, "Find"), this.search);
    byId("choosers").append(...this.choosers, label);
    this.patterns = element("div", { class: "tools", role: "group", "aria-label": "what heads are called" });
    this.patterns.append(...chipsOfPatterns());
    this.said = element("p", { class: "hint" });
    this.key = element("div");
    this.plot = new HeadPlot(chooseHead);
    this.cards = element("div", { class: "cards" });
    byId("beside").append(this.cards);
    const questions = atlas.commands.filter(([, command]) => !command.includes("{query}"));
    const asking = questions.map(([title, command]) => commandLine(title, command));
    this.panel = panel;
    panel.append(this.patterns, this.plot.part, this.said, ...asking);
    this.show();
  }

  show() {
    const { draw, x, y } = chosen();
    if (this.search.value !== state.find) this.search.value = state.find;
    for (const [place, value] of [draw, y, x].entries()) {
      this.choosers[place].hidden = place > axesOf().length;
      this.choosers[place].lastChild.value = value;
    }
    this.key.replaceChildren(...(draw === "measure" ? [legend(scaleOfGrid())] : []), legend(SHADES));
    this.showCards(); // two heads leave less room for all of them
    this.plot.draw(this.panel.clientWidth);
    const { close } = this.plot.svg.dataset;
    const unlabelled = close > 0 ? [`Too close to others for a number: ${close}.`] : [];
    const aboutOf = (title) => atlas.measures[measureCalled(title)].about;
    const axes = axesOf().map((title) => `${title[0].toUpperCase()}${title.slice(1)}: ${aboutOf(title)}.`);
    tell();
    this.said.textContent = [HINT, ...unlabelled, ...axes].join(" ");
    this.markFound();
  }

  markFound() {
    const asked = state.find;
    const found = findHeads(asked);
    for (const chip of this.patterns.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", chip.dataset.pattern === asked);
    }
    const chips = found.map(([place, why]) => {
      const { name } = atlas.heads[place];
      return { name, why, isChosen: chosen().heads.includes(name), choose: () => chooseHead(place) };
    });
    const none = asked.trim() && !found.length ? [nothingFound(asked, "a head as 18.6, a pattern, or a word")] : [];
    byId("found").replaceChildren(...chipsOfHeads(chips), ...none);
    this.plot.mark(found.length ? new Set(found.map(([place]) => place)) : null);
  }

  showCards() {
    const { heads, isPinned } = chosen();
    const now = [...heads, isPinned, onDark.matches].join(); // shades are others on paper, as that of a print is
    if (this.shown === now) return;
    this.shown = now;
    const cards = heads.map((name) => headCard(headCalled(name), this.buttons(name)));
    const second = element("p", { class: "hint card" }, "Choose another head to stand here.");
    this.cards.replaceChildren(...cards, ...(isPinned && heads.length < 2 ? [second] : []));
  }

  buttons(name) {
    const { heads, isPinned } = chosen();
    const text = heads.length > 1 ? "Close" : isPinned ? "Alone" : "Side by side …";
    const press = () => {
      const others = heads.filter((each) => each !== name).join();
      change({ heads: others || (isPinned ? name : `${name},`) });
      this.cards.querySelector("button")?.focus();
    };
    return [element("button", { type: "button", onclick: press, "aria-label": `${text}: head ${name}` }, text)];
  }
}

function chipsOfPatterns() {
  const chips = Object.entries(atlas.letters).map(([pattern, letter]) => {
    const n = atlas.heads.filter(({ names }) => names.some(([name]) => name === pattern)).length;
    const onclick = () => look(state.find === pattern ? "" : pattern);
    const attributes = { type: "button", class: "button chip", "data-pattern": pattern, onclick };
    const chip = element("button", attributes, element("b", {}, letter), ` ${pattern} · ${n}`);
    chip.style.setProperty("--line", colourOfPattern(pattern));
    return chip;
  });
  const none = element("p", { class: "hint" }, `Heads: ${unnamed("none follows a single pattern beyond chance")}.`);
  return chips.length ? chips : [none];
}
