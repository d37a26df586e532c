// The command that draws what is seen as a file, to copy. It stands only where `attnviz render` draws the same.
import { columnsOf, content, maps, rowsOf } from "./content.js";
import { byId, element } from "./dom.js";
import { mapOf, pictureOf, scaleOf, state } from "./state.js";

export function commandToCopy() {
  const words = wordsOfCommand();
  if (!words) return "";
  const said = element("code", { tabindex: 0, id: "command" }, words);
  const copy = element(
    "button",
    { type: "button", onclick: () => copyText(said), "aria-label": "copy the command" },
    "Copy",
  );
  return element("div", { class: "tools" }, "As a file, from this page's folder:", said, copy);
}

// What the report was drawn with, and what was chosen since; nothing for what is no head of a record.
function wordsOfCommand() {
  const heads = chosenHeads();
  if (!content.render || !heads) return "";
  const chosen = heads.length === maps.length ? [] : [`--pick ${heads.join(",")}`];
  if (scaleOf().kind !== "lift") chosen.push(`--scale ${scaleOf().kind}`);
  if (state.view === "lines") chosen.push("--kind lines");
  if (state.view === "matrix") chosen.push(...partOfMap());
  return ["attnviz render", content.render.record, content.render.options, ...chosen].filter(Boolean).join(" ");
}

// As layer.head, or nothing where a map that is seen is of no single head.
function chosenHeads() {
  const seen = { overview: pictureOf().maps.map((number) => maps[number]), matrix: [mapOf()] };
  seen.lines = state.heads.map((number) => maps[number]);
  const of = seen[state.view];
  return of?.every(({ layer }) => layer !== null) ? of.map(({ layer, head }) => `${layer}.${head}`) : null;
}

// Of a map the row of the chosen query, or the column of the chosen key; of a long text what the window shows.
function partOfMap() {
  const map = mapOf();
  const place = (axis, number) => Number.parseInt(axis.positions[number], 10);
  if (state.window && map.factors) {
    const [top, bottom, left, right] = state.window;
    return [`--query ${top}:${bottom}`, `--key ${left}:${right}`];
  }
  if (state.side === "to" && state.key !== null) {
    const key = place(columnsOf(map), state.key);
    return [`--key ${key}:${key + 1}`];
  }
  return state.query === null ? [] : [`--query ${place(rowsOf(map), state.query)}`];
}

// A page that lies on a disk may have no clipboard: then the command is chosen, for the keyboard to copy.
async function copyText(said) {
  getSelection().selectAllChildren(said);
  try {
    await navigator.clipboard.writeText(said.textContent);
    byId("status").textContent = "Copied.";
  } catch {
    byId("status").textContent = document.execCommand("copy") ? "Copied." : "The command is marked: copy it.";
  }
}
