// Who wrote an answer, as a graph above the words: rows of nodes by layer, arrows from who wrote to who reads. A node that
// is chosen shows over the words where it looks, and beside the graph what is said of it and what is lost without it.
import { button, byId, content, drawing, element, isolated, roving, tell, write } from "./dom.js";
import { change, makers, plain, state } from "./state.js";
import { writeWords } from "./text.js";

const { graph } = content;
const [THINNEST, THICKEST, TIP] = [1, 6, 5]; // pixels, of an arrow of share 0 and 1; of a tip beyond its arrow
const MOST_TINTED = 60; // per cent of a word's tint at a weight of 1
const SEEN = 0.005; // a weight that is not 0 in two digits
const COLOUR_OF = {
  for: "var(--head-1)",
  against: "var(--head-0)",
  looks: "var(--quiet)",
  because: "var(--head-2)",
};
const ofTwoDigits = (number) => number.toFixed(2).replace(/^(-?)0\./u, "$1.");
const chooseNode = (node) => change({ node: String(node) });
const nameOf = ({ name, note }) => [isolated(name), " ", element("small", {}, note)];

plain.node = String(graph.rows[0][0]); // the one that is chosen
const chosenNode = () => Number(state.node in graph.nodes ? state.node : plain.node);

makers.graph = (panel) => {
  const arrows = drawing("svg", { class: "over", "aria-hidden": "true" });
  const words = writtenWords();
  const hint = (said) => element("span", { class: "hint" }, said);
  const rows = graph.rows.flatMap((row) => [hint(graph.nodes[row[0]].row), shownRow(row)]);
  const below = graph.axis.labels.length ? [hint(write("ui.words")), words] : [];
  const whole = element("div", { class: "graph" }, arrows, ...rows, ...below);
  panel.append(whole);
  roving(whole, ".node");
  const draw = () => {
    const box = whole.getBoundingClientRect();
    arrows.replaceChildren(...graph.edges.flatMap((edge) => arrowOf(edge, box)));
    mark(words, arrows);
  };
  draw();
  const kinds = Object.entries(graph.legend).map(([kind, said]) => step(kind, said));
  return { legend: () => element("div", { class: "steps" }, ...kinds), mark: () => mark(words, arrows), draw };
};

// Each node at its place between the left and the right, as far as the others leave room.
function shownRow(row) {
  const made = element("div", { class: "tools nodes" });
  const lanes = [0, ...row.map((node) => graph.nodes[node].lane), 1];
  for (const [at, node] of [...row, null].entries()) {
    made.append(element("i", { style: { "flex-grow": lanes[at + 1] - lanes[at] } }));
    if (node === null) return made;
    const look = { class: "button node takes-part", id: `node-${node}` };
    made.append(button(nameOf(graph.nodes[node]), () => chooseNode(node), look));
  }
}

// Those that take part are nodes, too.
function writtenWords() {
  const { positions } = graph.axis;
  const nodeOf = (token) => graph.nodes.findIndex((node) => node.token === token && !node.row);
  const choose = (token) => nodeOf(token) >= 0 && chooseNode(nodeOf(token));
  const words = writeWords(graph.axis, write("ui.words"), () => {}, choose);
  for (const [token, word] of [...words.children].entries()) {
    if (token && Number(positions[token]) > Number(positions[token - 1]) + 1) word.before("… ");
    if (nodeOf(token) >= 0) Object.assign(word, { id: `node-${nodeOf(token)}`, className: "word takes-part" });
    word.append(element("small", { dir: "ltr" }));
  }
  return words;
}

// From the upper edge of who wrote to the lower edge of who reads, side by side where there are several.
function arrowOf({ source, target, kind, share, ports }, box) {
  const [from, to] = [source, target].map((node) => byId(`node-${node}`).getBoundingClientRect());
  const [x, toX] = [from, to].map(({ left, width }, end) => left - box.left + ports[end] * width);
  const [y, toY] = [from.top - box.top, to.bottom - box.top];
  const wide = THINNEST + (THICKEST - THINNEST) * share;
  const [half, foot] = [(wide + TIP) / 2, toY + wide + TIP];
  const middle = (y + foot) / 2;
  const line = `M${x} ${y}C${x} ${middle} ${toX} ${middle} ${toX} ${foot}`;
  const look = { "data-ends": `${source} ${target}`, stroke: COLOUR_OF[kind], "stroke-width": wide };
  const tip = `M${toX} ${toY}L${toX - half} ${foot}H${toX + half}Z`;
  return [
    drawing("path", { ...look, d: line, "stroke-dasharray": kind === "because" ? "7 4" : "none" }),
    drawing("path", { ...look, d: tip, fill: COLOUR_OF[kind], "stroke-width": 0 }),
  ];
}

function mark(words, arrows) {
  const { name, said, weights, token } = graph.nodes[chosenNode()];
  for (const node of graph.nodes.keys()) {
    const shown = byId(`node-${node}`);
    if (shown) shown.ariaCurrent = node === chosenNode() ? "true" : null;
  }
  for (const [at, word] of [...words.children].entries()) {
    const weight = weights[at] ?? 0;
    word.lastChild.textContent = weight >= SEEN ? ofTwoDigits(weight) : "";
    // Of a word that is not looked at it is seen through: behind it may go the arrow of a word on a lower line.
    const tint = `color-mix(in srgb, var(--tint) ${MOST_TINTED * weight}%, var(--paper))`;
    word.style.backgroundColor = weight ? tint : "";
    word.classList.toggle("from", weights.length > 0 && at === token);
  }
  for (const arrow of arrows.children) {
    arrow.classList.toggle("pale", !arrow.dataset.ends.split(" ").includes(String(chosenNode())));
  }
  tell(element("strong", {}, isolated(name)), said && (said.startsWith(name) ? said.slice(name.length) : `: ${said}`));
  const left = 1 - weights.reduce((sum, each) => sum + each, 0);
  const elsewhere = weights.length && left >= SEEN ? [write("ui.elsewhere", { share: ofTwoDigits(left) })] : [];
  byId("beside").replaceChildren(element("div", { class: "steps" }, ...elsewhere, ...stepsOf(chosenNode())));
}

const step = (kind, ...inner) => element("p", { style: { "border-color": COLOUR_OF[kind] } }, ...inner);

// What leads to a node, then what leads from it: to be walked along, each with what is lost without it.
function stepsOf(node) {
  const near = (end, other, way) =>
    graph.edges
      .filter((edge) => edge[end] === node)
      .sort((a, b) => b.share - a.share)
      .map(({ kind, said, knock_out: [before, after], ...edge }) => {
        const go = () => {
          chooseNode(edge[other]);
          byId(`node-${edge[other]}`).focus();
        };
        const name = button(nameOf(graph.nodes[edge[other]]), go, { class: "plain" });
        const knockOut =
          after === undefined ? "" : write("ui.without_it", { before: ofTwoDigits(before), after: ofTwoDigits(after) });
        return step(kind, way, name, `: ${said}`, element("b", {}, knockOut));
      });
  return [...near("target", "source", write("ui.from")), ...near("source", "target", write("ui.to"))];
}
