// The atlas of heads: which are found, all of them as points or as a grid, and one of them with all that is known of it.
import { atlas, chosen, findHeads, headCalled, measureOf, unnamed, WAYS } from "./atlas-data.js";
import { commandLine, headCard, SHADES } from "./atlas-head.js";
import { axesOf, colourOfPattern, HeadPlot, scaleOfGrid } from "./atlas-plot.js";
import { legend } from "./colour.js";
import { button, byId, chooser, element, onDark, tell, write } from "./dom.js";
import { change, makers, state } from "./state.js";

const HINT = "Choose a head; arrows go from one to the next.";
const MOST_FOUND = 24; // heads listed by a search

const chooseHead = (place) => change({ head: atlas.heads[place].name });

// What is found, the best of it opened.
function look(find) {
  const [best] = findHeads(find);
  change({ find, ...(best ? { head: atlas.heads[best[0]].name } : {}) });
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
    this.showCard();
    this.plot.draw(this.panel.clientWidth);
    const { close } = this.plot.svg.dataset;
    const unlabelled = close > 0 ? [`Too close to others for a number: ${close}.`] : [];
    const axes = axesOf().map((title) => `${title[0].toUpperCase()}${title.slice(1)}: ${measureOf(title).about}.`);
    tell();
    this.said.textContent = [HINT, ...unlabelled, ...axes].join(" ");
    this.markFound();
  }

  markFound() {
    const asked = state.find;
    const found = findHeads(asked);
    for (const chip of this.patterns.querySelectorAll("button")) {
      chip.setAttribute("aria-pressed", chip.dataset.pattern === asked);
    }
    const chips = found.slice(0, MOST_FOUND).map(([place, why]) => {
      const { name } = atlas.heads[place];
      const label = [element("b", {}, name), why ? ` ${why}` : ""];
      return button(label, () => chooseHead(place), { "aria-pressed": chosen().head === name });
    });
    const none = asked.trim() && !found.length ? write("ui.nothing_found", { asked }) : "";
    byId("found").replaceChildren(...chips, none);
    this.plot.mark(found.length ? new Set(found.map(([place]) => place)) : null);
  }

  showCard() {
    const now = `${chosen().head} ${onDark.matches}`; // shades are others on paper, as that of a print is
    if (this.shown === now) return;
    this.shown = now;
    byId("beside").replaceChildren(headCard(headCalled(chosen().head)));
  }
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
