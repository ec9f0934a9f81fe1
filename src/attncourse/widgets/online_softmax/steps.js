// The online softmax as a browser computes it: in float32, as fused kernels do.

import { largestOf } from "../shared/attention.js";

const f32 = Math.fround;

/** exp in float32: above 88.72 it is infinite, below -103.97 it is 0. */
const exp = (x) => f32(Math.exp(x));

/** What stands before the first block. */
function beginning(T, d) {
  return {
    blocks: 0,
    end: 0,
    largest: -Infinity,
    factor: null,
    counts: new Float32Array(T),
    sum: 0,
    mixed: new Float32Array(d),
    output: new Float32Array(d),
  };
}

/** The weighted sum divided by the sum; 0 where nothing may be looked at, as everywhere here. */
function divided({ largest, mixed, sum }) {
  return mixed.map((number) => (largest === -Infinity ? 0 : number / sum));
}

/**
 * All that is known after each block, the beginning first: how many `blocks` were read, up to which
 * score (`end`), the `largest` so far, the `factor` by which what came before was rescaled, what each
 * score `counts`, the `sum` of that, the values `mixed` by it, and the `output`.
 */
export function stepsOf({ T, d, scores, values, block, method }) {
  const steps = [beginning(T, d)];
  for (let first = 0; first < T; first += block) {
    const before = steps.at(-1);
    const end = Math.min(first + block, T);
    const largest = Math.max(before.largest, largestOf(scores.subarray(first, end)));
    // Where all so far are masked there is no largest, and nothing to subtract.
    const shift = method === "no maximum" || largest === -Infinity ? 0 : largest;
    const factor = method === "online" ? exp(f32(before.largest - shift)) : 1;
    const counts = before.counts.map((count) => count * factor);
    let sum = f32(before.sum * factor);
    const mixed = before.mixed.map((number) => number * factor);
    for (let j = first; j < end; j++) {
      counts[j] = exp(f32(scores[j] - shift));
      sum = f32(sum + counts[j]);
      for (let c = 0; c < d; c++) mixed[c] += f32(counts[j] * values[j * d + c]);
    }
    const step = { blocks: before.blocks + 1, end, largest, factor, counts, sum, mixed };
    steps.push({ ...step, output: divided(step) });
  }
  return steps;
}

/** The plain softmax, which needs all scores at once: weights first, then their mix of the values. */
export function plainSoftmax({ T, d, scores, values }) {
  const largest = largestOf(scores);
  const isMasked = largest === -Infinity;
  const counts = Float32Array.from(scores, (score) => (isMasked ? 0 : exp(f32(score - largest))));
  const sum = counts.reduce((total, count) => f32(total + count), 0);
  const weights = counts.map((count) => (isMasked ? 0 : count / sum));
  const output = new Float32Array(d);
  for (let j = 0; j < T; j++) {
    for (let c = 0; c < d; c++) output[c] += f32(weights[j] * values[j * d + c]);
  }
  return { largest, sum, weights, output };
}

/** The largest difference between two outputs; NaN where a number of one isn't one. */
export function differenceOf(output, other) {
  return Math.max(...output.map((number, c) => Math.abs(number - other[c])));
}
