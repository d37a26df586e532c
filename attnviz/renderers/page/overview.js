// All maps of a picture at once, small; each opens as a matrix.
import { drawSmall, legend, paintOf } from "./colour.js";
import { cellsOf, maps, readyCells } from "./content.js";
import { element, isolated, roving } from "./dom.js";
import { tell } from "./readout.js";
import { change, pictureOf, scaleOf, state } from "./state.js";

export async function overview(panel) {
  const [picture, scale] = [pictureOf(), scaleOf()];
  const grid = element("div", { class: "maps", role: "group", "aria-label": picture.title });
  grid.style.setProperty("--columns", picture.columns);
  const small = picture.maps.map((number, place) => {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const open = () => change({ view: "matrix", map: number, query: null, key: null, heads: [number] }, true);
    const current = number === state.map ? "true" : null;
    const label = element("span", {}, isolated(picture.titles[place]));
    grid.append(
      element("button", { type: "button", class: "map", "aria-current": current, onclick: open }, canvas, label),
    );
    return { number, canvas, button: grid.lastChild };
  });
  const [first] = picture.maps.map((number) => maps[number]);
  const hint = `Rows: ${first.row_axis}. Columns: ${first.column_axis}. Choose a map to open it.`;
  panel.append(element("h2", {}, isolated(picture.title)), grid);
  roving(grid, ".map", () => getComputedStyle(grid).gridTemplateColumns.split(" ").length);
  const draw = () => {
    for (const { number, canvas } of small) drawSmall(canvas, readyCells(number), scale);
  };
  const promised = picture.maps.map(cellsOf); // all at once: the browser unpacks beside the script
  for (const [place, { number, canvas, button }] of small.entries()) {
    drawSmall(canvas, await promised[place], scale);
    button.setAttribute("aria-label", [maps[number].title, maps[number].words].join(". "));
    button.addEventListener("focus", () => tell(button.getAttribute("aria-label")));
    button.addEventListener("pointerenter", () => tell(button.getAttribute("aria-label")));
  }
  const forbids = picture.maps.some((number) => readyCells(number).allowed);
  return {
    legend: () => legend(scale, [paintOf(scale)], scale.label, forbids),
    mark: () => tell(hint),
    draw,
  };
}
