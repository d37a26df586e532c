// Heads that a search has found, as chips with their numbers, the best first.
import { element, write } from "./dom.js";

const MOST_FOUND = 24; // heads listed by a search

// Of each head its name, why it is found, whether it is chosen, and what chooses it.
export function chipsOfHeads(found) {
  const chips = found.slice(0, MOST_FOUND).map(({ name, why, isChosen, choose }) => {
    const attributes = { type: "button", class: "button chip", "aria-pressed": isChosen, onclick: choose };
    return element("button", attributes, element("b", {}, name), why ? ` ${why}` : "");
  });
  return found.length > MOST_FOUND ? [...chips, write("ui.and_more", { n: found.length - MOST_FOUND })] : chips;
}

export const nothingFound = (asked, wanted) => write("ui.nothing_found", { asked, wanted });

// A share, "64 %", as a number.
export const strengthOf = (said) => Number(/([\d.]+) ?%?$/.exec(said)?.[1] ?? 0);
