// Averaging blurs: the same row with scores divided by more or less, and noise on the values.

import { element } from "../../../renderers/page/dom.js";
import {
  attend,
  distance,
  dot,
  drawNormal,
  effectiveKeys,
  findLargest,
  mean,
  norm,
  rootMeanSquare,
} from "./arithmetic.js";
import { change, choice, choosers, chosenHead, maskNote, onChange, WHICH_ROW } from "./choice.js";
import { bar, button, decimal, largestOf, row, strip, table } from "./parts.js";
import { paragraph, say, token, write } from "./phrases.js";

export const DRAWS = 200;
const SEED = 1;
const ALIKE = 1e-6; // less is rounding
const RANGE = { min: -4, max: 4, step: 0.25 }; // powers of 2
const draws = new Map();

function drawsOf(size) {
  if (!draws.has(size)) {
    const numbers = drawNormal(DRAWS * size, SEED);
    draws.set(
      size,
      [...Array(DRAWS).keys()].map((at) => numbers.slice(at * size, (at + 1) * size)),
    );
  }
  return draws.get(size);
}

// How often the output with noise points the way of the value of the key that has the largest weight, by the cosine. A
// word that stands there twice may have one value in both places, and either is right.
// The sum of independent noises, each times its weight, is one noise whose size is that of the weights.
export function countRight(head, work, noise) {
  const top = findLargest(work.weights);
  const size = noise * rootMeanSquare(head.values) * norm(work.weights);
  const directions = head.values.map((value) => value.map((each) => each / norm(value)));
  const isTop = directions.map((direction) => dot(direction, directions[top]) > 1 - ALIKE);
  const isRight = (draw) => {
    const noisy = work.output.map((each, at) => each + size * draw[at]);
    return isTop[findLargest(directions.map((direction) => dot(direction, noisy)))];
  };
  const open = work.masked.filter((each) => each !== -Infinity).length;
  const alike = isTop.filter((each, at) => each && work.masked[at] !== -Infinity).length;
  return { right: drawsOf(head.size).filter(isRight).length, guess: (DRAWS * alike) / open };
}

export function blurSection(place) {
  const divisor = slider(RANGE, (value) => change({ temperature: 2 ** value }), write("blur.name"), "temperature");
  const noise = slider(
    { min: 0, max: 2, step: 0.05 },
    (value) => change({ noise: value }),
    write("blur.noisename"),
    "noise",
  );
  const presets = element(
    "div",
    { class: "presets" },
    button(write("blur.none"), () => change({ temperature: 1 / Math.sqrt(chosenHead().size) })),
    button(write("blur.own"), () => change({ temperature: 1 })),
    button(write("blur.wide"), () => change({ temperature: 8 })),
  );
  const bias = paragraph("blur.bias", {}, { class: "hint" });
  const bars = element("div", {});
  const said = element("div", { "aria-live": "polite" });
  const readout = element("p", { "aria-live": "polite" });
  place.append(
    paragraph("blur.lead"),
    choosers("model", "layer", "head", "query"),
    maskNote(),
    divisor.label,
    presets,
    bias,
    bars,
    said,
    noise.label,
    readout,
    paragraph("blur.why"),
  );
  onChange([...WHICH_ROW, "causal", "temperature", "noise"], () => {
    const head = chosenHead();
    const work = attend(head, choice.query, { causal: choice.causal, temperature: choice.temperature });
    const top = findLargest(work.weights);
    divisor.set(Math.log2(choice.temperature), say("blur.slider", describeDivisor(head)));
    noise.set(choice.noise, say("blur.noise", { sigma: decimal(choice.noise, 2) }));
    bias.hidden = !head.bias;
    const rows = work.weights.map((weight, at) => row(token(at), [bar(weight), decimal(weight)]));
    bars.replaceChildren(
      table(write("blur.weights", { query: token(choice.query) }), [write("hand.key"), write("hand.c_weight")], rows, {
        class: "bars",
      }),
    );
    said.replaceChildren(...describeOutput(head, work, top));
    const { right, guess } = countRight(head, work, choice.noise);
    readout.replaceChildren(...say("blur.readout", { right, guess: decimal(guess, 0), draws: DRAWS, top: token(top) }));
  });
}

const describeDivisor = (head) => ({
  factor: decimal(choice.temperature, 2),
  divisor: decimal(choice.temperature * Math.sqrt(head.size), 2),
});

function describeOutput(head, work, top) {
  const open = head.values.filter((_, at) => work.masked[at] !== -Infinity);
  const plain = mean(open);
  const largest = largestOf(head.values);
  const away = {
    distance: decimal(distance(work.output, plain)),
    top: token(top),
    most: decimal(distance(head.values[top], plain)),
  };
  return [
    paragraph("blur.effective", { n: decimal(effectiveKeys(work.weights), 2), all: open.length }),
    element("p", { class: "named" }, element("span", {}, write("blur.output")), strip("o", work.output, largest)),
    element(
      "p",
      { class: "named" },
      element("span", {}, write("blur.mean")),
      strip(write("blur.mean"), plain, largest),
    ),
    paragraph("blur.distance", away),
  ];
}

function slider(range, act, name, which) {
  const oninput = (event) => act(Number(event.target.value));
  const input = element("input", { type: "range", ...range, oninput, "aria-label": name, "data-slider": which });
  const text = element("span", {});
  const set = (value, said) => {
    input.value = value;
    text.replaceChildren(...said);
    input.setAttribute("aria-valuetext", text.textContent);
  };
  return { label: element("label", { class: "slider" }, text, input), set };
}
