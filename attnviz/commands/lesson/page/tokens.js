// The sentence as tokens, and which of them asks.

import { element, roving } from "../../../renderers/page/dom.js";
import { change, choice, chosenModel, onChange } from "./choice.js";
import { button } from "./parts.js";
import { lesson, paragraph, say, token, write } from "./phrases.js";

export function tokensSection(place) {
  const lead = element("p", {});
  const chips = element("div", { class: "chips", role: "group", "aria-label": write("tokens.group") });
  const made = lesson.tokens.map((each, at) =>
    button([token(at), ...mark(each)], () => change({ query: at }), { class: "chip" }),
  );
  chips.append(...made);
  roving(chips, ".chip");
  place.append(lead, chips, ...describeUnknown(), paragraph("tokens.three"));
  if (!lesson.models[0].projects) place.append(paragraph("tokens.bare"));
  if (lesson.models.some((model) => model.nLayers > 1)) place.append(paragraph("tokens.deeper"));
  onChange(["model", "query"], () => {
    lead.replaceChildren(...say("tokens.lead", { width: chosenModel().dModel }));
    for (const [at, chip] of made.entries()) chip.setAttribute("aria-pressed", at === choice.query);
  });
}

function mark(each) {
  if (each.unknown) return [element("small", {}, write("tokens.unknown"))];
  return each.special ? [element("small", {}, write("tokens.marker"))] : [];
}

function describeUnknown() {
  const found = [];
  if (lesson.nUnknown) {
    const said = say("page.unknown", { unknown: lesson.nUnknown, tokens: lesson.nTokens });
    const more = lesson.mostlyUnknown ? [" ", ...say("page.mostly")] : [];
    found.push(element("p", { class: "warning" }, ...said, ...more));
  }
  if (lesson.cut) found.push(paragraph("page.cut", { cut: lesson.cut }, { class: "warning" }));
  return found;
}
