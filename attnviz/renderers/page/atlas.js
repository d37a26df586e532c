// The atlas of heads: which are found, all of them as points or as a grid, and one or two of them beside each other.
import { atlas, findHeads, headCalled, measureCalled, openAtlas, short, unnamed } from "./atlas-data.js";
import { commandLine, headCard, SHADES } from "./atlas-head.js";
import { colourOfPattern, HeadPlot, isGrid, scaleOfGrid, shadeOfCell } from "./atlas-plot.js";
import { chipsOfHeads, nothingFound } from "./chips.js";
import { legend } from "./colour.js";
import { chooser, colourOf, element } from "./dom.js";
import { change, state } from "./state.js";
import { links, makers } from "./views.js";
import { tint } from "./writing.js";

const HINT = "Choose a point: each is a head, and arrows go from one to the next.";

// Measures and heads by their names: a link may be of another survey, and what is not there is left out.
state.atlas = { x: "", y: "", draw: "points", heads: [], find: "", isPinned: false };

links.atlas = {
  write(parts) {
    const { x, y, draw, heads, find } = state.atlas;
    for (const [name, value] of Object.entries({ x, y, heads: heads.join(","), find }))
      if (value) parts.set(name, value);
    if (draw === "grid") parts.set("draw", draw);
  },
  read(parts) {
    const words = (name) => parts.get(name) ?? "";
    const heads = words("heads").split(",").filter(Boolean).slice(0, 2);
    const draw = words("draw") === "grid" ? "grid" : "points";
    return { atlas: { x: words("x"), y: words("y"), draw, heads, find: words("find"), isPinned: false } };
  },
};

const keepThere = () => {
  const [x, y] = atlas.axes.map((place) => atlas.measures[place].title);
  const known = (title, other) => (measureCalled(title) < 0 ? other : title);
  const heads = state.atlas.heads.filter((name) => headCalled(name) >= 0);
  Object.assign(state.atlas, { x: known(state.atlas.x, x), y: known(state.atlas.y, y) });
  const { values } = atlas.measures[measureCalled(state.atlas.y)];
  const highest = values.indexOf(Math.max(...values.filter((value) => value !== null))); // to begin with
  state.atlas.heads = heads.length ? heads : [atlas.heads[highest].name];
};

const alter = (changes) => change({ atlas: { ...state.atlas, ...changes } });

function chooseHead(place) {
  const { heads, isPinned } = state.atlas;
  const name = atlas.heads[place].name;
  if (heads.includes(name)) return;
  alter({ heads: isPinned || heads.length > 1 ? [heads[0], name] : [name], isPinned: false });
}

makers.atlas = async (panel) => {
  await openAtlas();
  keepThere();
  const page = new AtlasPage(panel);
  page.draw();
  return { legend: () => "", mark: () => page.mark(), draw: () => page.draw() };
};

class AtlasPage {
  constructor(panel) {
    this.controls = element("div", { class: "tools" });
    this.search = element("input", {
      type: "search",
      placeholder: "18.6, previous token, film …",
      value: state.atlas.find,
    });
    this.search.addEventListener("input", () => alter({ find: this.search.value }));
    const label = element("label", { class: "chooser" }, element("span", {}, "Find"), this.search);
    this.found = element("div", { class: "chips", role: "group", "aria-label": "heads that are found" });
    this.patterns = element("div", { class: "chips", role: "group", "aria-label": "what heads are called" });
    this.said = element("p", { class: "hint", "aria-live": "polite" }, HINT);
    this.key = element("div", {});
    this.plot = new HeadPlot(chooseHead, (place) => this.tell(place));
    this.left = element("div", { class: "all-heads" }, this.patterns, this.plot.svg, this.said, this.key);
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
  }

  draw() {
    this.showControls();
    this.showPatterns();
    const shades = element(
      "div",
      {},
      legend(SHADES, (share) => tint(share, colourOf("--tint")), "shade in a moment: × an equal share", false),
    );
    const ends = () => [colourOf("--head-0"), colourOf("--panel")];
    const paint = (share) => shadeOfCell(share, ...ends());
    const colours = () => legend(scaleOfGrid(), paint, `colour: ${state.atlas.y}`, false);
    this.key.replaceChildren(...(isGrid() ? [colours()] : []), shades);
    this.drawn = this.wanted();
    this.width = null;
    this.showCards();
    this.showPlot();
    const close = this.plot.nClose ? [`Too close to others for a number: ${this.plot.nClose}.`] : [];
    const aboutOf = (title) => atlas.measures[measureCalled(title)].about;
    const axes = this.axes().map((title) => `${title[0].toUpperCase()}${title.slice(1)}: ${aboutOf(title)}.`);
    this.said.textContent = [HINT, ...close, ...axes].join(" ");
    this.markFound();
  }

  axes() {
    return isGrid() ? [state.atlas.y] : [state.atlas.x, state.atlas.y];
  }

  wanted() {
    const { x, y, draw } = state.atlas;
    return [x, y, draw].join("|");
  }

  mark() {
    keepThere();
    if (this.drawn !== this.wanted()) return this.draw();
    if (this.search.value !== state.atlas.find) this.search.value = state.atlas.find;
    this.showCards();
    this.showPlot();
    return this.markFound();
  }

  showControls() {
    const focused = [...this.controls.querySelectorAll("select")].indexOf(document.activeElement);
    const titles = atlas.measures.map(({ title }) => [title, title]);
    const ways = [
      ["points", "points"],
      ["grid", "layers × heads"],
    ];
    const of = (label, name, options = titles) =>
      chooser(label, options, state.atlas[name], (value) => alter({ [name]: value }));
    const axes = isGrid() ? [of("Colour", "y")] : [of("Across", "x"), of("Up", "y")];
    this.controls.replaceChildren(of("Heads as", "draw", ways), ...axes);
    this.controls.querySelectorAll("select")[focused]?.focus();
  }

  showPatterns() {
    const chips = Object.entries(atlas.letters).map(([pattern, letter]) => {
      const n = atlas.heads.filter(({ names }) => names.some(([name]) => name === pattern)).length;
      const attributes = { type: "button", class: "chip", "data-pattern": pattern };
      const toggle = () => {
        const { find, heads, isPinned } = state.atlas;
        if (find === pattern) return alter({ find: "" });
        const [[place]] = findHeads(pattern); // the strongest, unless two are held side by side
        return alter({ find: pattern, heads: isPinned || heads.length > 1 ? heads : [atlas.heads[place].name] });
      };
      const chip = element(
        "button",
        { ...attributes, onclick: toggle },
        element("b", {}, letter),
        ` ${pattern} · ${n}`,
      );
      chip.style.setProperty("--line", colourOfPattern(pattern));
      return chip;
    });
    const none = element("p", { class: "hint" }, `Heads: ${unnamed("none follows a single pattern beyond chance")}.`);
    this.patterns.replaceChildren(...(chips.length ? chips : [none]));
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
    const now = `${heads.join(",")}|${isPinned}`;
    if (this.shown === now) return;
    if (this.shown) this.tell(headCalled(heads.at(-1)));
    this.shown = now;
    const cards = heads.map((name) => {
      const place = headCalled(name);
      const card = headCard(place, this.buttons(name));
      card.dataset.head = place;
      return card;
    });
    const second = element("p", { class: "hint card" }, "Choose another head to stand here.");
    this.cards.replaceChildren(...cards, ...(isPinned && heads.length < 2 ? [second] : []));
    this.cards.classList.toggle("two", this.cards.children.length > 1);
  }

  // Two heads leave less room for all of them.
  showPlot() {
    if (this.width === this.left.clientWidth) return;
    this.width = this.left.clientWidth;
    this.plot.draw(this.width);
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

  tell(place) {
    if (place === null) return;
    const { name, names } = atlas.heads[place];
    const numbers = this.axes().map((title) => `${title} ${short(atlas.measures[measureCalled(title)].values[place])}`);
    this.said.textContent = [`Head ${name}`, ...names.map((each) => each.join(" ")), ...numbers].join(" · ");
  }
}
