// One key written out at every step, and all components of its vectors.

import { element } from "../../../renderers/page/dom.js";
import { attendChosen, choice, chosenHead } from "./choice.js";
import { decimal, factor, vector } from "./parts.js";
import { say, tokenText, write } from "./phrases.js";

export const LAST = 6;
const N_WRITTEN = 4; // products and components that are written out; the table of components has all

const indexed = (symbol, at) => element("span", { class: "symbol" }, symbol, element("sub", {}, at));

export function writeOut(work) {
  const { key, query, step } = choice;
  const lines = WRITTEN[step](work, key, query).map((line) => element("p", { class: "line" }, ...line.flat()));
  const title = step === LAST ? write("hand.written_sum") : write("hand.written", { key: tokenText(key) });
  return [element("h3", {}, title), ...lines];
}

const products = (left, right) => {
  const shown = left.slice(0, N_WRITTEN).map((each, at) => `${factor(each)} × ${factor(right[at])}`);
  const rest = left.length - shown.length;
  return [
    shown.join(" + "),
    ...(rest > 0 ? [" + ", element("span", { class: "more" }, write("hand.more", { n: rest }))] : []),
  ];
};

const WRITTEN = [
  (work, key, query) => [
    [indexed("q", query), ` = ${vector(work.q)}`],
    [indexed("k", key), ` = ${vector(chosenHead().keys[key])}`],
    [indexed("v", key), ` = ${vector(chosenHead().values[key])}`],
  ],
  (work, key, query) => [
    [
      indexed("q", query),
      " · ",
      indexed("k", key),
      " = ",
      products(work.q, chosenHead().keys[key]),
      ` = ${decimal(work.scores[key])}`,
    ],
  ],
  (work, key) => {
    const d = chosenHead().size;
    const bias = work.bias ? ` + ${factor(work.bias[key])}` : "";
    return [
      [
        indexed("s", key),
        ` = ${factor(work.scores[key])} ÷ √${d}${bias} = ${factor(work.scores[key])} ÷ ${decimal(Math.sqrt(d))}${bias} = ${decimal(work.scaled[key])}`,
      ],
    ];
  },
  (work, key) => [[indexed("s", key), ` = ${decimal(work.scaled[key])} → ${decimal(work.masked[key])}`]],
  (work, key) => {
    const inside = work.shift ? `${factor(work.masked[key])} − ${factor(work.shift)}` : decimal(work.masked[key]);
    return [
      [
        indexed("a", key),
        ` = exp(${inside}) ÷ ${decimal(work.total)} = ${decimal(work.exponentials[key])} ÷ ${decimal(work.total)} = ${decimal(work.weights[key])}`,
      ],
    ];
  },
  (work, key) => [
    [
      indexed("a", key),
      " ",
      indexed("v", key),
      ` = ${decimal(work.weights[key])} × ${vector(chosenHead().values[key])} = ${vector(work.weighted[key])}`,
    ],
  ],
  (work) => {
    const order = [...work.weights.keys()].sort((a, b) => work.weights[b] - work.weights[a]); // the largest are written
    const weights = order.map((at) => work.weights[at]);
    const first = order.map((at) => chosenHead().values[at][0]);
    return [
      ["o = Σ a v = ", vector(work.output)],
      [
        element("span", { class: "symbol" }, "o", element("sub", {}, "[0]")),
        " = ",
        products(weights, first),
        ` = ${decimal(work.output[0])}`,
      ],
    ];
  },
];

// All components of what is written out: of 128, too. Drawn only while it is open.
export function drawComponents(place) {
  const work = attendChosen();
  const head = chosenHead();
  const { key, step } = choice;
  const summary = place.querySelector("summary") ?? element("summary", {});
  summary.replaceChildren(...say("hand.components", { d: head.size }));
  if (!place.contains(summary)) place.append(summary);
  place.querySelector(".wide")?.remove();
  if (!place.open) return;
  const columns = [
    ["q", work.q],
    ["k", head.keys[key]],
    ...(step >= 1 ? [[write("hand.product"), work.q.map((each, at) => each * head.keys[key][at])]] : []),
    ["v", head.values[key]],
    ...(step >= 5 ? [["a · v", work.weighted[key]]] : []),
    ...(step >= 6 ? [["o", work.output]] : []),
  ];
  const rows = work.q.map((_, at) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, at),
      ...columns.map(([, numbers]) => element("td", {}, decimal(numbers[at]))),
    ),
  );
  const heads = [write("hand.component"), ...columns.map(([name]) => name)].map((name) =>
    element("th", { scope: "col" }, name),
  );
  const table = element(
    "table",
    { class: "components" },
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rows),
  );
  place.append(
    element(
      "div",
      { class: "wide tall", role: "region", tabindex: 0, "aria-label": write("hand.components", { d: head.size }) },
      table,
    ),
  );
}
