// One head for one query, in the order of the formula: softmax(q · kᵀ / √d + b) v. Knows numbers and no page.

const MAX_PLAIN = 20; // of the largest score: beyond it, exp has too many digits to be read, or none

const dot = (left, right) => left.reduce((total, each, at) => total + each * right[at], 0);

const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);

// Every step of one query. `temperature` multiplies the divisor.
export function attend(head, query, { temperature = 1 } = {}) {
  const q = head.queries[query];
  const scores = head.keys.map((key) => dot(q, key));
  const divided = scores.map((score) => score / (Math.sqrt(head.size) * temperature));
  const bias = head.bias?.[query].map((each) => each / temperature);
  const scaled = bias ? divided.map((score, at) => score + bias[at]) : divided;
  const largest = Math.max(...scaled);
  const shift = Math.abs(largest) <= MAX_PLAIN ? 0 : largest;
  const exponentials = scaled.map((score) => Math.exp(score - shift));
  const total = sum(exponentials);
  const weights = exponentials.map((each) => each / total);
  const weighted = head.values.map((value, at) => value.map((each) => each * weights[at]));
  return {
    q,
    scores,
    bias,
    scaled,
    shift,
    total,
    weights,
    weighted,
    output: add(weighted),
  };
}

export const add = (vectors) => vectors[0].map((_, at) => sum(vectors.map((each) => each[at])));

export const mean = (vectors) => add(vectors).map((each) => each / vectors.length);

export const distance = (left, right) => Math.hypot(...left.map((each, at) => each - right[at]));

// The exponential of the entropy: over how many keys the weights are spread.
export const effectiveKeys = (weights) => Math.exp(-sum(weights.map((each) => (each > 0 ? each * Math.log(each) : 0))));

export const findLargest = (numbers) => numbers.indexOf(Math.max(...numbers));
