// When several heads help, and when not: what was measured of many texts, as cards and the study have it.

import { element } from "../../../renderers/page/dom.js";
import { decimal, row, signed, table } from "./parts.js";
import { lesson, paragraph, say, write } from "./phrases.js";
import { recallTrial } from "./trial.js";

export function whenSection(place) {
  place.append(paragraph("when.lead"));
  if (lesson.reviews.length > 1) place.append(...describeReviews(lesson.reviews));
  place.append(
    ...describeRecall(lesson.capacity),
    recallTrial(),
    element("p", { class: "conclusion" }, ...say("when.sum")),
  );
}

const interval = ([value, low, high], digits) => {
  if (decimal(low, digits) === decimal(high, digits)) return decimal(value, digits);
  return write("when.interval", {
    value: decimal(value, digits),
    low: decimal(low, digits),
    high: decimal(high, digits),
  });
};

function describeReviews(reviews) {
  const [one, many] = [reviews[0], reviews.at(-1)];
  const values = { n: one.nTexts.toLocaleString("en-US"), seeds: one.nSeeds };
  const shares = { one: decimal(one.accuracy[0], 4), many: decimal(many.accuracy[0], 4) };
  const rows = reviews.map((each) =>
    row(each.heads, interval(each.accuracy, 4), each.loss === null ? "–" : decimal(each.loss)),
  );
  const more = [];
  if (many.change) {
    const [change, low, high] = many.change.map((each) => signed(each, 4));
    const verdict = many.change[1] <= 0 && many.change[2] >= 0 ? "when.reviews_same" : "when.reviews_differ";
    more.push(paragraph(verdict, { ...values, ...shares, change, low, high }));
  }
  if (one.cost && many.cost) {
    more.push(paragraph("when.cost", { ...values, one: interval(one.cost, 4), many: interval(many.cost, 4) }));
  }
  if (one.loss !== null && many.loss !== null) {
    more.push(paragraph("when.loss", { one: decimal(one.loss), many: decimal(many.loss) }));
  }
  return [
    element("h3", {}, write("when.reviews")),
    ...more,
    table(write("when.shares"), [write("when.heads"), write("when.accuracy"), write("when.hidden")], rows, {
      class: "measured",
    }),
  ];
}

function describeRecall(study) {
  const rows = study.items.map((items, at) => row(items, ...study.shares[at].map((each) => interval(each, 3))));
  const of = study.shares.at(-1);
  const [one, many] = [study.rest[1], study.rest[8]];
  const columns = [
    write("when.items"),
    ...study.heads.map((n) => write(n === 1 ? "when.one_head" : "when.n_heads", { n })),
  ];
  return [
    element("h3", {}, write("when.recall")),
    paragraph("when.recall_lead", {
      parameters: study.parameters.toLocaleString("en-US"),
      steps: study.steps.toLocaleString("en-US"),
    }),
    table(write("when.whole"), columns, rows, { class: "measured" }),
    paragraph("when.recall_result", {
      one: decimal(of[0][0]),
      many: decimal(of.at(-1)[0]),
      noise_one: decimal(study.halving[0], 2),
      noise_many: decimal(study.halving.at(-1), 2),
    }),
    paragraph("when.rest", {
      share: decimal(one.share[0]),
      steps_one: one.steps.toLocaleString("en-US"),
      steps_many: many.steps.toLocaleString("en-US"),
      noise: decimal(one.halving, 2),
    }),
  ];
}
