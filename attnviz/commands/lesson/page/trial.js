// The task on which several heads help, to try: what two models report of a sequence, with heads of one turned off.

import { chooser, element } from "../../../renderers/page/dom.js";
import { button, redraw, row, table } from "./parts.js";
import { lesson, paragraph, say, write } from "./phrases.js";

export function recallTrial() {
  const { letters, sequences, models } = lesson.recall;
  const [one, many] = models;
  const reported = models.map((model) => Uint8Array.from(atob(model.reported), (sign) => sign.charCodeAt(0)));
  const chosen = { sequence: 0, off: 0 };
  const place = element("div", { id: "recall" });
  const tokens = element("p", { class: "sequence" });
  const switches = element("div", {
    class: "switches",
    role: "group",
    "aria-label": write("when.heads_of", { model: many.name }),
  });
  const answers = element("div", { "aria-live": "polite" });

  const reportOf = (at, off, sequence = chosen.sequence) => {
    const start = (sequence * 2 ** models[at].nHeads + off) * letters.length;
    return [...reported[at].subarray(start, start + letters.length)];
  };
  const headSwitch = (head) => {
    const isOff = Boolean((chosen.off >> head) & 1);
    const label = [write("off.head", { head }), element("span", {}, write(isOff ? "off.off" : "off.on"))];
    return button(label, () => show({ off: chosen.off ^ (1 << head) }), {
      class: "switch-head",
      "data-at": head,
      "aria-pressed": !isOff,
    });
  };
  const rowOf = (at) => {
    const { values } = sequences[chosen.sequence];
    const found = reportOf(at, at === 1 ? chosen.off : 0);
    const right = found.filter((value, letter) => value === values[letter]).length;
    const cells = found.map((value, letter) => (value === values[letter] ? String(value) : markWrong(value)));
    return row(write("when.reports", { model: models[at].name, right, all: letters.length }), ...cells);
  };
  const show = (news = {}) => {
    Object.assign(chosen, news);
    const sequence = sequences[chosen.sequence];
    tokens.replaceChildren(
      ...sequence.tokens.flatMap((token) => [element(/^[a-z]/.test(token) ? "b" : "span", {}, token), " "]),
    );
    redraw(switches, ...[...Array(many.nHeads).keys()].map(headSwitch));
    const truth = row(write("when.truth"), ...sequence.values.map(String));
    answers.replaceChildren(
      table(
        write("when.letters"),
        ["", ...letters].map((each) => each || write("choose.model")),
        [truth, rowOf(0), rowOf(1)],
        { class: "letters" },
      ),
    );
  };
  const countWhole = (at) => {
    const isWhole = ({ values }, sequence) =>
      reportOf(at, 0, sequence).every((value, letter) => value === values[letter]);
    return sequences.filter(isWhole).length;
  };
  const whole = { all: sequences.length, one: one.name, many: many.name, n: countWhole(0), m: countWhole(1) };
  const options = sequences.map((_, at) => [at, String(at)]);
  place.append(
    element("h3", {}, write("when.try")),
    paragraph("when.try_lead", { one: one.name, many: many.name }),
    element(
      "div",
      { class: "choosers" },
      chooser(write("when.sequence"), options, 0, (sequence) => show({ sequence })),
    ),
    tokens,
    switches,
    answers,
    paragraph("when.of_all", whole),
  );
  show();
  return place;
}

const markWrong = (value) =>
  element("span", { class: "wrong" }, element("s", {}, value), element("small", {}, ...say("when.wrong")));
