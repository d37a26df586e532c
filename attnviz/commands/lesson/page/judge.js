// The numbers that are published for an example, beside what the formula gives, and whether they follow from it.

import { write } from "../../../renderers/page/dom.js";
import { attend } from "./arithmetic.js";
import { table } from "./parts.js";
import { lesson } from "./phrases.js";

const CLOSE = 1e-9; // half-way may be rounded in either way

export function judgeSection(place) {
  const heads = lesson.models.flatMap((model) =>
    model.layers[0].heads.map((head, number) => judge(model, head, number)),
  );
  const rows = ["weights", "output"].flatMap((of) =>
    ["published", "formula", "unscaled", "follows"].map((kind) => [
      write(`judge.${of}`, { kind: write(`judge.${kind}`) }),
      ...heads.map((head) => head[of][kind]),
    ]),
  );
  const columns = [write("judge.numbers"), ...heads.map(({ name }) => name)];
  place.append(table(write("judge.lead"), columns, rows));
}

function judge(model, head, number) {
  const formula = attend(head, 0);
  const unscaled = attend(head, 0, { temperature: 1 / Math.sqrt(head.size) }); // which undoes the division by √d
  const compare = (of) => {
    const published = head[of];
    const isOf = (exact) =>
      published.every((each, at) => Math.abs(each - exact[at]) <= 0.5 * 10 ** -lesson.decimals + CLOSE);
    const verdict = isOf(formula[of]) ? "yes" : isOf(unscaled[of]) ? "only" : "neither";
    const [shown, right, wrong] = [published, formula[of], unscaled[of]].map((values) =>
      values.map((each) => each.toFixed(lesson.decimals)).join(", "),
    );
    return { published: shown, formula: right, unscaled: wrong, follows: write(`judge.${verdict}`) };
  };
  const name = model.nHeads > 1 ? `${model.name} · ${write("heads.head", { head: number })}` : model.name;
  return { name, weights: compare("weights"), output: compare("output") };
}
