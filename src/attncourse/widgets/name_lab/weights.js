// NameLab's model as the page asks it: the weights that a worker has trained so far, or the first ones.

import { TransformerModel } from "../engine/model.js";
import { rngOfWeights } from "../engine/streams.js";
import { specWith } from "../lab/runs.js";

/** Promises the weights of a run as far as it is; null if its worker is gone before it answers. */
export function weightsOf(run) {
  const at = run.curve.length;
  if (run.keptWeights?.at !== at) {
    run.keptWeights = { at, weights: run.training.ask("weights").catch(() => null) };
  }
  return run.keptWeights.weights;
}

/** A model of a setting that is `model(state)`: with what it has learned, or as a worker would draw it. */
export function createMind({ spec, recipe }) {
  let learned = null; // weights
  let made = null; // of the last call
  return {
    knows: (weights) => weights === learned,
    learn(weights) {
      learned = weights;
      made = null;
    },
    forget() {
      if (learned !== null) made = null;
      learned = null;
    },
    model({ numHeads, seed }) {
      if (made?.numHeads === numHeads && made.seed === seed) return made.model;
      const model = new TransformerModel(specWith(spec, numHeads));
      if (learned === null) model.draw(rngOfWeights(seed), recipe.model);
      else model.load(learned);
      made = { numHeads, seed, model };
      return model;
    },
  };
}
