// Attention in the browser: numbers in, numbers out, all of it in float64.

/** The head counts that cut d columns into equal heads. */
export function divisors(d) {
  return Array.from({ length: d }, (_, i) => i + 1).filter((h) => d % h === 0);
}

/**
 * One head's weights, softmax(Q_i K_i^T / sqrt(d_k)), as T x T numbers row by row.
 *
 * q and k are T x d, all heads side by side: head i reads columns i * d_k to (i + 1) * d_k.
 * With `causal`, weights to the right of the diagonal are 0. With `mask`, T x T booleans, weights are
 * 0 where it is false, also in rows that may look nowhere.
 */
export function attentionWeights(q, k, { T, d, numHeads, head, causal, mask = null }) {
  const width = d / numHeads; // d_k
  const first = head * width;
  const scale = Math.sqrt(width);
  const weights = new Float64Array(T * T);
  for (let i = 0; i < T; i++) {
    const keys = causal ? i + 1 : T;
    for (let j = 0; j < keys; j++) {
      let score = 0;
      for (let c = first; c < first + width; c++) score += q[i * d + c] * k[j * d + c];
      const forbidden = mask !== null && !mask[i * T + j];
      weights[i * T + j] = forbidden ? -Infinity : score / scale;
    }
    softmaxInPlace(weights.subarray(i * T, i * T + keys));
  }
  return weights;
}

/** The largest of some numbers; -Infinity where there are none. A loop: it runs for each row of each map. */
export function largestOf(numbers) {
  let largest = -Infinity;
  for (let i = 0; i < numbers.length; i++) if (numbers[i] > largest) largest = numbers[i];
  return largest;
}

/** Turn scores into weights that sum to 1. A score of -Infinity is forbidden; all of them: all 0. */
export function softmaxInPlace(scores) {
  const largest = largestOf(scores);
  if (largest === -Infinity) return void scores.fill(0);
  let sum = 0;
  for (let j = 0; j < scores.length; j++) {
    // Subtracting the largest score changes no weight, and keeps exp from overflowing.
    scores[j] = Math.exp(scores[j] - largest);
    sum += scores[j];
  }
  for (let j = 0; j < scores.length; j++) scores[j] /= sum;
}
