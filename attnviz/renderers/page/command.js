// The command that draws what is seen as a file, to copy. It stands only where `attnviz render` draws the same.
import { columnsOf, maps, rowsOf } from "./content.js";
import { content, copyButton, element, write } from "./dom.js";
import { mapOf, orderOf, pictureOf, scaleOf, state } from "./state.js";

// What the report was drawn with, and what was chosen since.
export function commandToCopy() {
  const heads = chosenHeads();
  if (!content.render || !heads) return ""; // of what is no head of a record
  const { record, options, heads: ofReport } = content.render;
  const isSorted = state.view === "overview" && orderOf(pictureOf()).by !== null;
  const isAll = heads.length === maps.filter(({ layer }) => layer !== null).length;
  const chosen = [isAll && !isSorted ? ofReport : `--pick ${heads.join(",")}`];
  if (scaleOf().kind !== "lift") chosen.push(`--scale ${scaleOf().kind}`);
  if (state.view !== "overview") chosen.push(...partOfMap());
  const command = ["attnviz render", record, options, ...chosen].filter(Boolean).join(" ");
  const code = element("code", { tabindex: 0, id: "command" }, command);
  const copy = copyButton(write("ui.copy"), write("ui.copy_command"), () => command);
  return element("div", { class: "tools" }, write("ui.as_file"), code, copy);
}

// As layer.head, or nothing where a map that is seen is of no single head.
function chosenHeads() {
  const order = () => orderOf(pictureOf()).order.map((place) => maps[pictureOf().maps[place]]);
  const found = { overview: order, matrix: () => [mapOf()] }[state.view]?.();
  return found?.every(({ layer }) => layer !== null) ? found.map(({ layer, head }) => `${layer}.${head}`) : null;
}

// Of a map the row of the chosen query, or the column of the chosen key.
function partOfMap() {
  const { query, key } = state;
  const isKey = key !== null && (query === null || state.side === "to");
  if (!isKey && query === null) return [];
  const { positions } = isKey ? columnsOf(mapOf()) : rowsOf(mapOf());
  // The first and the last token of a place, which may stand for a block of them.
  const [first, last = first] = positions[isKey ? key : query].split("–").map(Number);
  if (isKey) return [`--key ${first}:${last + 1}`];
  return [`--query ${first === last ? first : `${first}:${last + 1}`}`];
}
