// What a worker can train on: each task, by its name, makes what a training needs of a message.

import { concord } from "./language.js";
import { names } from "./names.js";
import { makeDiagonals, makeInduction, makeLookup } from "./sequences.js";
import { fresh, given } from "./streams.js";

export const TASKS = {
  given,
  concord: (message) => fresh(concord, message),
  names: (message) => fresh(names, message),
  lookup: (message) => fresh(makeLookup(message.options), message),
  diagonals: (message) => fresh(makeDiagonals(message.options), message),
  induction: (message) => fresh(makeInduction(message.options), message),
};
