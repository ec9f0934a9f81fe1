// Sentences of a task, one after the other: the twin of attnlib.relations.Task.stream.

import { makeChance } from "./chance.js";

const PATIENCE = 10_000; // so many sentences in a row that must not come, and there are no others

/**
 * A function that returns a sentence each time: {words, ids, answers, partners}, the same ones for a
 * seed as in Python. Those of `without`, such as sentences held out for a test, don't come.
 */
export function streamOf(task, seed, without = []) {
  const chance = makeChance(seed);
  const heldOut = new Set(without.map(({ ids }) => ids.join()));
  return () => {
    for (let refused = 0; refused < PATIENCE; refused++) {
      const sentence = task.draw(chance);
      if (!heldOut.has(sentence.ids.join())) return sentence;
    }
    throw new RangeError(
      `without must leave sentences to draw, but ${PATIENCE} in a row were among its ${heldOut.size}`,
    );
  };
}
