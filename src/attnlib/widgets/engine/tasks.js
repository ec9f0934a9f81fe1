// What a worker can train on: each task, by its name, makes what a training needs of a message.
//
// That is {next, heldOut, relations, chance}: next() gives another sentence to learn from, heldOut
// are those to evaluate on, and chance, where there is one, draws a model's first weights.

import { makeChance } from "./chance.js";
import { concord } from "./language.js";
import { streamOf } from "./sentences.js";
import { makeDiagonals, makeInduction, makeLookup } from "./sequences.js";

const OF_HELD_OUT = 2 ** 31; // the seed of held-out sentences, as in attnlib.training
const OF_WEIGHTS = 1; // the stream of a seed from which weights are drawn

export const TASKS = {
  given,
  concord: (message) => fresh(concord, message),
  lookup: (message) => fresh(makeLookup(message.options), message),
  diagonals: (message) => fresh(makeDiagonals(message.options), message),
  induction: (message) => fresh(makeInduction(message.options), message),
};

/** Sentences that come with the message itself, taken in turn, again and again. */
function given({ sentences, heldOut = [], relations = [] }) {
  let taken = 0;
  return { next: () => sentences[taken++ % sentences.length], heldOut, relations };
}

/** Sentences of a task of attnlib.relations that are drawn from a seed, none of those `heldOut`. */
function fresh(task, { seed, heldOut: count = 300 }) {
  const heldOut = Array.from({ length: count }, streamOf(task, OF_HELD_OUT));
  const next = streamOf(task, seed, heldOut);
  return { next, heldOut, relations: task.relations, chance: makeChance(seed, OF_WEIGHTS) };
}
