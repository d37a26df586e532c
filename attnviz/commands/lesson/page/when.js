// When several heads help, and when not: a task to try, and what was measured of many texts.

import { byId, chooser, element, say, write } from "../../../renderers/page/dom.js";
import { decimal, signed, switchHeads, table } from "./parts.js";
import { lesson, paragraph } from "./phrases.js";

export function whenSection() {
  fillTrial();
  const { capacity, reviews } = lesson;
  const judged = reviews.at(-1);
  const [change, low, high] = judged.change.map((each) => signed(each, 4));
  const name = judged.change[1] <= 0 && judged.change[2] >= 0 ? "when.reviews_same" : "when.reviews_differ";
  const seen = { n: judged.nTexts.toLocaleString("en-US"), seeds: judged.nSeeds, change, low, high };
  byId("reviews").append(...say(name, seen));
  const { rest, halving } = capacity;
  const shares = capacity.shares.at(-1);
  byId("recalled").append(...say("when.recall", { one: decimal(shares[0][0], 3), many: decimal(shares.at(-1)[0], 3) }));
  const longer = {
    steps_one: rest[1].steps.toLocaleString("en-US"),
    steps_many: rest[8].steps.toLocaleString("en-US"),
    noise: decimal(rest[1].halving, 2),
    noise_many: decimal(halving.at(-1), 2),
  };
  byId("measured").append(
    paragraph("when.judged", seen),
    ...tablesOf(reviews, capacity),
    paragraph("when.longer", longer),
  );
}

// What two models report of a sequence, with heads of one turned off.
function fillTrial() {
  const { letters, sequences, models } = lesson.recall;
  const [one, many] = models;
  const report = (at, sequence, off = 0) => {
    const found = models[at].reported[sequence][off];
    return { found, right: found.filter((value, letter) => value === sequences[sequence].values[letter]).length };
  };
  const all = sequences.map((_, sequence) => models.map((_, at) => report(at, sequence).right === letters.length));
  const first = all.findIndex(([of, others]) => !of && others);
  const chosen = { sequence: Math.max(0, first), off: 0 };
  const wrong = (value) =>
    element("span", { class: "wrong" }, element("s", {}, value), " ", element("small", {}, write("when.wrong")));
  const rowOf = (at) => {
    const { values } = sequences[chosen.sequence];
    const { found, right } = report(at, chosen.sequence, at ? chosen.off : 0);
    const name = write(at ? "when.many" : "when.one", { right });
    return [name, ...found.map((value, letter) => (value === values[letter] ? "✓" : wrong(value)))];
  };
  const show = (news = {}) => {
    Object.assign(chosen, news);
    const { tokens } = sequences[chosen.sequence];
    byId("sequence").replaceChildren(
      ...tokens.flatMap((each) => [element(/^[a-z]/.test(each) ? "b" : "span", { class: "hint" }, each), " "]),
    );
    switchHeads(byId("switches"), many.nHeads, chosen.off, (off) => show({ off }));
    byId("reported").replaceChildren(
      table(write("when.letters"), [write("choose.model"), ...letters], [rowOf(0), rowOf(1)]),
    );
  };
  const options = sequences.map((_, at) => [at, String(at)]);
  const [n, m] = [0, 1].map((at) => all.filter((each) => each[at]).length);
  byId("try").append(...say("when.try", { one: one.name, many: many.name }));
  byId("sequences").append(chooser(write("when.sequence"), options, chosen.sequence, (sequence) => show({ sequence })));
  byId("switches").setAttribute("aria-label", write("when.heads_of", { model: many.name }));
  byId("recall").append(paragraph("when.of_all", { all: sequences.length, n, m }));
  show();
}

const interval = ([value, low, high], digits) =>
  write("when.interval", { value: decimal(value, digits), low: decimal(low, digits), high: decimal(high, digits) });

function tablesOf(reviews, study) {
  const judged = reviews.map(({ heads, accuracy, loss, cost }) => [
    String(heads),
    interval(accuracy, 4),
    interval(cost, 4),
    decimal(loss),
  ]);
  const recalled = study.items.map((items, at) => [
    String(items),
    ...study.shares[at].map((each) => interval(each, 3)),
  ]);
  const columns = ["heads", "accuracy", "cost", "hidden"].map((name) => write(`when.${name}`));
  const [parameters, steps] = [study.parameters, study.steps].map((each) => each.toLocaleString("en-US"));
  const caption = write("when.whole", { parameters, steps });
  const ofHeads = study.heads.map((n) => write("when.n_heads", { n }));
  return [table(write("when.shares"), columns, judged), table(caption, [write("when.items"), ...ofHeads], recalled)];
}
