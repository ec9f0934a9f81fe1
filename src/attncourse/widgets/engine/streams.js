// Where a training's sentences come from: they are given, or drawn from a seed.
//
// `given` and `fresh` make what a training needs of a message: {next, heldOut, relations, rng}.
// next() gives another sentence to learn from, heldOut are those to evaluate on, and rng, where
// there is one, draws a model's first weights.

import { sfc32 } from "./rng.js";

const OF_HELD_OUT = 2 ** 31; // the seed of held-out sentences, as in attncourse.training
const OF_WEIGHTS = 1; // the stream of a seed from which weights are drawn
const PATIENCE = 10_000; // so many sentences in a row that must not come, and there are no others

/** What draws a model's first weights, from a training's seed. */
export function rngOfWeights(seed) {
  return sfc32(seed, OF_WEIGHTS);
}

/** Sentences that come with the message itself, taken in turn, again and again. */
export function given({ sentences, heldOut = [], relations = [] }) {
  let taken = 0;
  return { next: () => sentences[taken++ % sentences.length], heldOut, relations };
}

/**
 * Sentences of a task of attncourse.tasks that are drawn from a seed, none of those `heldOut`. Models
 * are evaluated on the first few of these, `evaluated`, or on all.
 */
export function fresh(task, { seed, heldOut: count, evaluated = count }) {
  const heldOut = heldOutOf(task, count);
  const next = streamOf(task, seed, heldOut);
  const rng = rngOfWeights(seed);
  return { next, heldOut: heldOut.slice(0, evaluated), relations: task.relations, rng };
}

/**
 * A function that returns a sentence each time, as Python's `Task.stream`: {words, ids, answers,
 * partners}, the same ones for a seed. Those of `without`, such as sentences held out for a test,
 * don't come.
 */
export function streamOf(task, seed, without = []) {
  const rng = sfc32(seed);
  const heldOut = new Set(without.map(({ ids }) => ids.join()));
  return () => {
    for (let refused = 0; refused < PATIENCE; refused++) {
      const sentence = task.draw(rng);
      if (!heldOut.has(sentence.ids.join())) return sentence;
    }
    throw new RangeError(
      `without must leave sentences to draw, but ${PATIENCE} in a row were among its ${heldOut.size}`,
    );
  };
}

/** Sentences on which models are evaluated, and never trained. */
export function heldOutOf(task, count) {
  return Array.from({ length: count }, streamOf(task, OF_HELD_OUT));
}
