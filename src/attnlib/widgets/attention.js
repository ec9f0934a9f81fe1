// Attention in the browser: numbers in, numbers out, all of it in float64.

/** Read `count` little-endian float32 numbers; throws when there are more, fewer, or wrong ones. */
export function readFloats(name, bytes, count) {
  const view = ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes instanceof ArrayBuffer ? bytes : new ArrayBuffer(0));
  if (view.byteLength !== 4 * count) {
    throw new Error(`${name} should be ${count} numbers in ${4 * count} bytes, but is ${view.byteLength}`);
  }
  const numbers = Float64Array.from({ length: count }, (_, i) => view.getFloat32(4 * i, true));
  if (!numbers.every(Number.isFinite)) throw new Error(`${name} holds a number that isn't finite`);
  return numbers;
}

/** The head counts that cut d columns into equal heads. */
export function divisors(d) {
  return Array.from({ length: d }, (_, i) => i + 1).filter((h) => d % h === 0);
}

/**
 * One head's weights, softmax(Q_i K_i^T / sqrt(d_k)), as T x T numbers row by row.
 *
 * q and k are T x d, all heads side by side: head i reads columns i * d_k to (i + 1) * d_k.
 * With `causal`, weights to the right of the diagonal are 0.
 */
export function attentionWeights(q, k, { T, d, numHeads, head, causal }) {
  const width = d / numHeads; // d_k
  const first = head * width;
  const weights = new Float64Array(T * T);
  for (let i = 0; i < T; i++) {
    const keys = causal ? i + 1 : T;
    let largest = -Infinity;
    for (let j = 0; j < keys; j++) {
      let score = 0;
      for (let c = first; c < first + width; c++) score += q[i * d + c] * k[j * d + c];
      score /= Math.sqrt(width);
      weights[i * T + j] = score;
      largest = Math.max(largest, score);
    }
    let sum = 0;
    for (let j = 0; j < keys; j++) {
      // Subtracting the largest score changes no weight, and keeps exp from overflowing.
      weights[i * T + j] = Math.exp(weights[i * T + j] - largest);
      sum += weights[i * T + j];
    }
    for (let j = 0; j < keys; j++) weights[i * T + j] /= sum;
  }
  return weights;
}
