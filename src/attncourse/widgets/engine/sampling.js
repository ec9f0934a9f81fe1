// Drawing from a model that tells the next token, as attnlib.model's `generate` does.

/**
 * The chances with which tokens are drawn: softmax(logits / temperature) among the `topK` likeliest, 0
 * for all others. At temperature 0 the likeliest has it all.
 */
export function chancesOf(logits, { temperature, topK }) {
  const inOrder = [...logits.keys()].sort((a, b) => logits[b] - logits[a] || a - b);
  const [likeliest] = inOrder;
  const chances = new Float64Array(logits.length);
  if (temperature === 0) {
    chances[likeliest] = 1;
    return chances;
  }
  let sum = 0;
  for (const token of inOrder.slice(0, topK)) {
    // The largest is subtracted first, so that a tiny temperature makes no infinity of it.
    chances[token] = Math.exp((logits[token] - logits[likeliest]) / temperature);
    sum += chances[token];
  }
  return chances.map((size) => size / sum);
}

/** A token by its chance. */
export function drawnFrom(chances, rng) {
  let left = rng.uniform();
  for (const [token, share] of chances.entries()) {
    left -= share;
    if (left < 0) return token;
  }
  return chances.findLastIndex((share) => share > 0); // they sum to a little less than 1
}

/** The logits of a model's readout "next" after the last of some tokens. */
export function logitsAfter(model, ids) {
  const { next } = model.answer({ ids }).logits;
  return next.subarray(next.length - model.spec.readouts.next);
}

/** Let a model continue tokens until `stop` comes or its positions end; returns all tokens. */
export function goneOn(model, ids, stop, options, rng) {
  const all = [...ids];
  while (all.length <= model.spec.length) {
    const token = drawnFrom(chancesOf(logitsAfter(model, all), options), rng);
    all.push(token);
    if (token === stop) break;
  }
  return all;
}
