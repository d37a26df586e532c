// How a text is set: which way it runs, and the tint of a word that is looked at.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/u;
const LETTER = /\p{L}/u;

// Which way a text runs: as most of its tokens that have letters and are no markers.
export function directionOf(labels, special) {
  const written = labels.filter((label, place) => !special[place] && LETTER.test(label));
  const leftwards = written.filter((label) => RIGHT_TO_LEFT.test(label)).length;
  return leftwards > written.length / 2 ? "rtl" : "ltr";
}

// A tint of the paper, from none at 0 to all at 1, so that the word stays legible.
export const tint = (share, colour = "var(--tint)") =>
  `color-mix(in srgb, ${colour} ${(100 * share).toFixed(1)}%, transparent)`;
