// Averaging blurs: the same row with scores divided by more or less, and noise on the values. The picture follows.

import { element } from "../../../renderers/page/dom.js";
import { distance, dot, drawNormal, effectiveKeys, findLargest, mean, norm, rootMeanSquare } from "./arithmetic.js";
import { attendChosen, change, choice, chosenHead, onChange, WHICH_ROW } from "./choice.js";
import { button, decimal } from "./parts.js";
import { paragraph, say, token, write } from "./phrases.js";

const DRAWS = 200;
const SEED = 1;
const ALIKE = 1e-6; // less is rounding

// How often the output with noise points the way of the value of the key that has the largest weight, by the cosine. A
// word that stands there twice may have one value in both places, and either is right.
// The sum of independent noises, each times its weight, is one noise whose size is that of the weights.
function countRight(head, work, noise) {
  const top = findLargest(work.weights);
  const size = noise * rootMeanSquare(head.values) * norm(work.weights);
  const directions = head.values.map((value) => value.map((each) => each / norm(value)));
  const isTop = directions.map((direction) => dot(direction, directions[top]) > 1 - ALIKE);
  const numbers = drawNormal(DRAWS * head.size, SEED);
  const isRight = (draw) => {
    const noisy = work.output.map((each, at) => each + size * numbers[draw * head.size + at]);
    return isTop[findLargest(directions.map((direction) => dot(direction, noisy)))];
  };
  const isOpen = (_, at) => work.masked[at] !== -Infinity;
  const alike = isTop.filter((each, at) => each && isOpen(each, at)).length;
  return {
    right: [...Array(DRAWS).keys()].filter(isRight).length,
    guess: (DRAWS * alike) / work.masked.filter(isOpen).length,
  };
}

export function blurSection(place) {
  const divisor = slider("temperature", { min: -4, max: 4, step: 0.25 }, (value) =>
    change({ temperature: 2 ** value }),
  );
  const noise = slider("noise", { min: 0, max: 2, step: 0.05 }, (value) => change({ noise: value }));
  const presets = element(
    "div",
    { class: "switches" },
    button(write("blur.none"), () => change({ temperature: 1 / Math.sqrt(chosenHead().size) })),
    button(write("blur.own"), () => change({ temperature: 1 })),
    button(write("blur.wide"), () => change({ temperature: 8 })),
  );
  const said = element("div", { "aria-live": "polite" });
  place.append(paragraph("blur.lead"), divisor.label, presets, noise.label, said, paragraph("blur.why"));
  onChange([...WHICH_ROW, "temperature", "noise"], () => {
    const head = chosenHead();
    const work = attendChosen();
    const { temperature } = choice;
    const divided = { factor: decimal(temperature, 2), divisor: decimal(temperature * Math.sqrt(head.size), 2) };
    divisor.set(Math.log2(temperature), say("blur.slider", divided));
    noise.set(choice.noise, say("blur.noise", { sigma: decimal(choice.noise, 2) }));
    said.replaceChildren(...describe(head, work));
  });
}

function describe(head, work) {
  const open = head.values.filter((_, at) => work.masked[at] !== -Infinity);
  const [plain, top] = [mean(open), findLargest(work.weights)];
  const { right, guess } = countRight(head, work, choice.noise);
  const values = {
    query: token(choice.query),
    n: decimal(effectiveKeys(work.weights), 2),
    all: open.length,
    top: token(top),
    distance: decimal(distance(work.output, plain)),
    most: decimal(distance(head.values[top], plain)),
  };
  const found = { right, guess: decimal(guess, 0), draws: DRAWS, top: token(top) };
  return [paragraph("blur.effective", values), paragraph("blur.distance", values), paragraph("blur.readout", found)];
}

function slider(name, range, act) {
  const oninput = (event) => act(Number(event.target.value));
  const input = element("input", { type: "range", ...range, oninput, "data-slider": name });
  const text = element("span", {});
  const set = (value, said) => {
    input.value = value;
    text.replaceChildren(...said);
    input.setAttribute("aria-valuetext", text.textContent);
  };
  return { label: element("label", { class: "slider" }, text, input), set };
}
