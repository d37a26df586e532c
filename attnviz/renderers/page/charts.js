// The report's charts: lines, and samples side by side. What is pointed at says its numbers, as does what keys move to.
import { LinesChart } from "./charts_lines.js";
import { SamplesChart } from "./charts_samples.js";
import { numbersOf } from "./charts_words.js";
import { content } from "./content.js";
import { drawing, element, isolated } from "./dom.js";
import { tell } from "./readout.js";
import { makers } from "./views.js";

const POINTING = "Point at a chart, or move through it with the arrow keys, to read its numbers.";

makers.charts = async (panel) => {
  const shown = content.charts.flatMap((picture) => shownPicture(panel, picture));
  const draw = () => {
    for (const each of shown) each.draw();
  };
  draw();
  return { legend: () => "", mark: () => tell(POINTING), draw };
};

function shownPicture(panel, picture) {
  const Kind = picture.kind === "curves" ? LinesChart : SamplesChart;
  const all = picture.charts.map((chart) => new ShownChart(new Kind(chart, picture)));
  const grid = element("div", { class: "charts" }, ...all.map((each) => each.figure));
  grid.style.setProperty("--columns", Math.min(3, picture.columns, all.length));
  const hints = [...new Set(all.flatMap((each) => each.chart.hints()))].map((hint) =>
    element("p", { class: "axis" }, hint),
  );
  panel.append(
    element("section", {}, element("h2", {}, isolated(picture.title)), namesOf(picture, Kind), ...hints, grid),
  );
  return all;
}

// A name stands beside a sample of how it looks; one name alone that says nothing needs no line.
function namesOf({ names }, Kind) {
  if (names.length < 2 && !names[0]) return "";
  const items = names.map((name, place) => {
    const sample = drawing("svg", { class: "sample", viewBox: "0 0 34 14", "aria-hidden": "true" });
    sample.append(...Kind.sample(place));
    return element("li", {}, sample, isolated(name));
  });
  return element("ul", { class: "names", "aria-label": "names" }, ...items);
}

// One chart on the page. What can be pointed at stands in groups: the points of a line, the numbers of a sample.
class ShownChart {
  constructor(chart) {
    this.chart = chart;
    this.current = null; // a group and a place in it, which is null for the group as a whole
    const { title, x_axis, y_axis } = chart.data;
    this.svg = drawing("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": chart.words() });
    const name = (axis, kind) => element("p", { class: `axis ${kind}` }, isolated(axis));
    this.figure = element(
      "figure",
      {},
      element("h3", {}, isolated(title)),
      name(y_axis, "y"),
      element("div", { class: "scrolling" }, this.svg),
      name(x_axis, "x"),
      element("p", { class: "axis" }, chart.lost()),
      numbersOf(chart),
    );
    for (const kind of ["pointermove", "pointerdown"]) {
      this.svg.addEventListener(kind, (event) => this.show(this.chart.nearest(...this.placeOf(event))));
    }
    // A finger that is lifted leaves, too: what it tapped stays.
    this.svg.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType !== "touch" && !this.svg.matches(":focus")) this.show(null);
    });
    this.svg.addEventListener("focus", () => this.show(this.current ?? this.chart.first()));
    this.svg.addEventListener("blur", () => this.show(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  draw() {
    const width = Math.max(200, this.svg.parentElement.clientWidth);
    const { drawn, size } = this.chart.draw(width);
    this.over = drawing("g");
    this.svg.setAttribute("viewBox", `0 0 ${size.join(" ")}`);
    this.svg.setAttribute("width", size[0]);
    this.svg.setAttribute("height", size[1]);
    this.svg.replaceChildren(...drawn, this.over);
    this.mark();
  }

  placeOf({ clientX, clientY }) {
    const box = this.svg.getBoundingClientRect();
    const scale = this.svg.viewBox.baseVal.width / box.width;
    return [(clientX - box.left) * scale, (clientY - box.top) * scale];
  }

  show(current) {
    this.current = current;
    this.mark();
    tell(...(current ? this.chart.said(...current) : [POINTING]));
  }

  mark() {
    this.over.replaceChildren(...(this.current ? this.chart.marks(...this.current) : []));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = this.current && this.chart.moved(event.key, ...this.current);
    if (!next) return;
    event.preventDefault();
    this.show(next);
  }
}
