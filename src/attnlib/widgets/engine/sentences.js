// Sentences of a task, one after the other: the twin of attnlib.relations.Task.stream.

import { makeChance } from "./chance.js";

/**
 * A function that returns a sentence each time: {words, ids, answers, partners}, the same ones for a
 * seed as in Python. Those of `without`, such as sentences held out for a test, don't come.
 */
export function streamOf(task, seed, without = []) {
  const chance = makeChance(seed);
  const heldOut = new Set(without.map(({ ids }) => ids.join()));
  return () => {
    for (;;) {
      const sentence = task.draw(chance);
      if (!heldOut.has(sentence.ids.join())) return sentence;
    }
  };
}
