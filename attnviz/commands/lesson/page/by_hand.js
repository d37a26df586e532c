// One head, by hand: a table that grows by a step at a time, and one key's arithmetic written out.

import { element, nextFrame, roving } from "../../../renderers/page/dom.js";
import {
  attendChosen,
  change,
  choice,
  choosers,
  chosenHead,
  chosenLayer,
  chosenModel,
  onChange,
  WHICH_ROW,
} from "./choice.js";
import { bar, button, decimal, largestOf, strip } from "./parts.js";
import { lesson, paragraph, say, token, write } from "./phrases.js";
import { drawComponents, LAST, writeOut } from "./written_out.js";

const narrow = matchMedia("(max-width: 760px)");

export function byHandSection(place) {
  const steps = element("div", { class: "steps", role: "group", "aria-label": write("hand.steps") });
  const items = [...Array(LAST + 1).keys()].map((step) =>
    button([element("b", {}, `${step}`), ` ${write(`hand.s${step}`)}`], () => change({ step }), { class: "step" }),
  );
  steps.append(...items);
  roving(steps, ".step");
  steps.addEventListener("focusin", (event) => {
    const step = items.indexOf(event.target);
    if (step >= 0 && step !== choice.step && event.target.matches(":focus-visible")) change({ step });
  });
  const back = button(write("hand.back"), () => change({ step: Math.max(0, choice.step - 1) }));
  const next = button(write("hand.next"), () => change({ step: Math.min(LAST, choice.step + 1) }), { "data-next": "" });
  const formula = element("p", { class: "formula" });
  const panel = element("div", { class: "panel", "aria-live": "polite" });
  const rows = element("div", {});
  const written = element("div", { class: "written" });
  const components = element("details", {});
  const checked = element("p", { class: "hint" });
  components.addEventListener("toggle", () => drawComponents(components));
  place.append(
    paragraph("hand.lead"),
    formula,
    choosers("model", "layer", "head", "query"),
    steps,
    panel,
    element("div", { class: "moves" }, back, next, element("span", { class: "hint" }, write("hand.keys"))),
    rows,
    written,
    components,
    checked,
  );
  rows.addEventListener("keydown", (event) => moveKey(event, rows));
  const draw = () => {
    const work = attendChosen();
    for (const [step, item] of items.entries()) {
      item.toggleAttribute("aria-current", false);
      if (step === choice.step) item.setAttribute("aria-current", "step");
    }
    back.setAttribute("aria-disabled", choice.step === 0); // not disabled: it would lose the focus
    next.setAttribute("aria-disabled", choice.step === LAST);
    formula.textContent = write(work.bias ? "hand.formula_bias" : "hand.formula");
    panel.replaceChildren(...describeStep(work));
    drawTable(rows, work);
    written.replaceChildren(...writeOut(work));
    drawComponents(components);
    const { weightsError, error } = chosenLayer();
    checked.replaceChildren(...say("hand.checked", { weights: small(weightsError), output: small(error) }));
  };
  onChange([...WHICH_ROW, "causal", "key", "step"], draw);
  narrow.addEventListener("change", () => nextFrame(narrow, draw));
}

const small = (value) =>
  value
    .toExponential(1)
    .replace("e-", " × 10⁻")
    .replace(/\d+$/, (digits) => [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join(""));

function describeStep(work) {
  const { step, query } = choice;
  const d = chosenHead().size;
  const values = { query: token(query), d, root: decimal(Math.sqrt(d)), total: decimal(work.total) };
  const found = [element("h3", {}, write(`hand.t${step}`)), element("p", {}, ...say(`hand.e${step}`, values))];
  if (step === 2 && work.bias) found.push(paragraph("hand.bias"));
  if (step === 3) {
    const hidden = work.masked.filter((each) => each === -Infinity).length;
    const said = { query: token(query), n: hidden, all: work.masked.length };
    found.push(choice.causal ? paragraph("hand.e3closed", said) : paragraph("hand.e3open"), maskSwitch());
  }
  const { nHeads, dModel, projects } = chosenModel();
  if (step === LAST && projects) {
    found.push(
      paragraph(nHeads > 1 ? "hand.mixed" : "hand.mixed_one", { heads: nHeads, width: dModel, query: token(query) }),
    );
  }
  if (step === 4 && work.shift) found.push(paragraph("hand.shift", { shift: decimal(work.shift) }));
  return found;
}

function maskSwitch() {
  const onchange = (event) => {
    change({ causal: event.target.checked });
    document.querySelector("#causal")?.focus();
  };
  const box = element("input", { type: "checkbox", id: "causal", checked: choice.causal, onchange });
  return element("label", { class: "switch" }, box, write("hand.causal"));
}

// Columns by the step that brings them; a step lights up its own. Vectors are shown where they are worked with.
function columnsOf(work) {
  const { keys, values } = chosenHead();
  const [ofKeys, ofValues] = [largestOf(keys, [work.q]), largestOf(values)];
  const cell = (numbers) => (at) => decimal(numbers[at]);
  const columns = [
    ...(choice.step < 5 ? [[0, "c_k", (at) => strip("k", keys[at], ofKeys)]] : []),
    [1, "c_score", cell(work.scores)],
    [2, "c_scaled", cell(work.divided)],
    ...(work.bias
      ? [
          [2, "c_bias", cell(work.bias)],
          [2, "c_sum", cell(work.scaled)],
        ]
      : []),
    [3, "c_masked", cell(work.masked)],
    [4, "c_exp", cell(work.exponentials)],
    [4, "c_weight", (at) => [decimal(work.weights[at]), bar(work.weights[at])]],
    ...(choice.step === 0 || choice.step >= 5 ? [[0, "c_v", (at) => strip("v", values[at], ofValues)]] : []),
    [5, "c_weighted", (at) => strip("a · v", work.weighted[at], ofValues)],
  ];
  return columns.filter(([step, name]) => step <= choice.step && (!narrow.matches || NEAR[choice.step].includes(name)));
}

// The columns that a narrow screen has room for: what a step makes, and what it makes it of.
const NEAR = [
  ["c_k", "c_v"],
  ["c_k", "c_score"],
  ["c_score", "c_scaled", "c_bias", "c_sum"],
  ["c_sum", "c_scaled", "c_masked"],
  ["c_masked", "c_exp", "c_weight"],
  ["c_weight", "c_v", "c_weighted"],
  ["c_weight", "c_weighted"],
];
const lights = (step) => ({ class: step === choice.step ? "now" : "past" });

function drawTable(place, work) {
  const columns = columnsOf(work);
  const heads = columns.map(([step, name]) =>
    element("th", { scope: "col", "data-column": name, ...lights(step) }, write(`hand.${name}`)),
  );
  const focused = place.contains(document.activeElement);
  const body = lesson.tokens.map((_, at) => {
    const isChosen = at === choice.key;
    const choose = button(token(at), () => change({ key: at }), {
      class: "key",
      "aria-pressed": isChosen,
      tabindex: isChosen ? 0 : -1,
    });
    const cells = columns.map(([step, name, show]) =>
      element("td", { "data-column": name, ...lights(step) }, ...[show(at)].flat()),
    );
    const masked = choice.step >= 3 && work.masked[at] === -Infinity;
    const of = { class: [isChosen && "chosen", masked && "masked"].filter(Boolean).join(" ") || null };
    return element("tr", of, element("th", { scope: "row" }, choose), ...cells);
  });
  place.replaceChildren(
    queryLine(work),
    element(
      "div",
      { class: "wide", role: "region", "aria-label": write("hand.table"), tabindex: 0 },
      element(
        "table",
        { class: "hand" },
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, write("hand.key")), ...heads)),
        element("tbody", {}, ...body),
        ...(choice.step >= 4 ? [element("tfoot", {}, totals(columns, work))] : []),
      ),
    ),
  );
  if (focused) place.querySelector(".key[aria-pressed=true]").focus();
}

function queryLine(work) {
  const { keys } = chosenHead();
  const shown = strip("q", work.q, largestOf(keys, [work.q]));
  return element(
    "p",
    { class: "query" },
    element("span", {}, "q", element("sub", {}, choice.query)),
    " ",
    token(choice.query),
    shown,
  );
}

function totals(columns, work) {
  const { values } = chosenHead();
  const shown = {
    c_exp: () => decimal(work.total),
    c_weight: () => decimal(work.weights.reduce((a, b) => a + b, 0)),
    c_weighted: () => (choice.step >= 6 ? strip("o", work.output, largestOf(values)) : ""),
  };
  const cells = columns.map(([step, name]) => {
    const isNow = name === "c_weighted" ? choice.step === 6 : step === choice.step;
    return element("td", { "data-column": name, class: isNow ? "now" : "past" }, shown[name]?.() ?? "");
  });
  return element("tr", {}, element("th", { scope: "row" }, write("hand.total")), ...cells);
}

function moveKey(event, rows) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const key = choice.key + step;
  if (!step || !event.target.matches(".key") || !(key in lesson.tokens)) return;
  event.preventDefault();
  change({ key });
  rows.querySelector(".key[aria-pressed=true]").focus();
}
