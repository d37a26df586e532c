// One map and beside it its text, or of a very long text what stands around a pair.
import { legend } from "./colour.js";
import { cellsOf, hasText, nameOfColumn, nameOfRow, rowsOf } from "./content.js";
import { button, byId, element, hasRoomBeside, isolated, named, tell, write } from "./dom.js";
import { FASTER, Plot } from "./plot.js";
import { said, tellCell } from "./readout.js";
import { change, makers, mapOf, pictureOf, scaleOf, state } from "./state.js";
import { Passage } from "./text.js";

const N_PAIRS = 10;

makers.matrix = (panel) => {
  const [map, scale] = [mapOf(), scaleOf()];
  const cells = cellsOf(state.map);
  const plot = new Plot(cells, map, scale, point);
  const context = map.factors ? makers.context(state.map, cells, scale) : null;
  const passage = !context && hasText(map, scale) ? new Passage(cells, map, scale, point) : null;
  function point(over) {
    plot.over = over;
    plot.plan();
    mark();
  }
  function mark() {
    const at = plot.over ?? plot.chosen();
    const strongest = passage?.mark(at);
    const cell = at?.word ? strongest : at;
    context?.mark(cell);
    if (cell) tellCell(map, cells, cell.query, cell.key);
    else tell(write("ui.how"));
  }
  const tools = element("div", { class: "tools" });
  tools.append(button("+", () => plot.zoom(FASTER), { "aria-label": write("ui.zoom_in") }));
  tools.append(button("−", () => plot.zoom(1 / FASTER), { "aria-label": write("ui.zoom_out") }));
  tools.append(button(write("ui.fit"), () => plot.fit(), { "aria-label": write("ui.whole_map") }));
  const axes = `${map.row_axis} ↓, ${map.column_axis} →`;
  if (map.backdrop !== null) panel.append(element("h2", {}, isolated(`${pictureOf().title}: ${map.title}`)));
  panel.append(tools, element("p", { class: "axis" }, axes), plot.frame, inWords(cells, map, scale.is_signed));
  byId("beside").append(...(passage?.parts ?? []), ...(context ? [context.part] : []));
  if (rowsOf(map).texts && !hasRoomBeside.matches) panel.prepend(...byId("beside").children); // else far below
  plot.fit();
  return {
    legend: () => legend(scale, cells.allowed && !cells.isOfPairs),
    mark: () => {
      plot.show();
      mark();
    },
    draw: () => {
      passage?.mark(plot.chosen());
      plot.fit();
    },
  };
};

// The strongest cells as sentences: what the picture shows to somebody who does not see it.
function inWords(cells, map, signed) {
  const pairs = cells.best(N_PAIRS).map(([row, column]) => {
    const go = () => change({ query: row, key: column });
    const [from, to] = [named(nameOfRow(map, row)), named(nameOfColumn(map, column))];
    const between = cells.isOfPairs ? write("ui.and") : " → ";
    const pair = [from, between, to, `: ${said(cells, row, column)}`];
    return element("li", {}, button(pair, go, { class: "plain", dir: "ltr" }));
  });
  const title = write(signed ? "ui.largest_cells" : pairs.length === 1 ? "ui.strongest_cell" : "ui.strongest_cells", {
    n: pairs.length,
  });
  return element("details", {}, element("summary", {}, title), element("ol", {}, ...pairs));
}
