// A training, step by step, as attncourse.training's `train` takes them.

import { AdamW } from "./adamw.js";
import { evaluate } from "./evaluation.js";
import { digestOf, roundToGrid } from "./grid.js";
import { should, shouldCount } from "./spec.js";

/** The learning rate of a step, counted from 0: it rises, stays, and falls along a straight line. */
export function learningRate(recipe, step) {
  const { steps, lr, warmup, falls_at: fallsAt, ends_at: endsAt } = recipe;
  const rising = warmup > 0 ? (step + 1) / warmup : 1;
  const [start, last] = [fallsAt * steps, steps - 1];
  const gone = last > start ? Math.min(1, Math.max(0, step - start) / (last - start)) : 0;
  return lr * Math.min(1, rising, 1 - gone * (1 - endsAt));
}

/** Throw unless a recipe says how to train; its names are those of attncourse.training's Recipe. */
export function checkRecipe(recipe) {
  for (const name of ["steps", "batch", "held_out"]) shouldCount(recipe[name], name);
  shouldCount(recipe.warmup, "warmup", 0);
  const isShare = (value) => value >= 0 && value <= 1;
  for (const name of ["falls_at", "ends_at"]) {
    should(isShare(recipe[name]), name, "a share from 0 to 1", recipe[name]);
  }
  const { betas } = recipe;
  const areBetas = Array.isArray(betas) && betas.length === 2 && betas.every(isShare);
  should(areBetas, "betas", "two shares from 0 to 1", betas);
  should(recipe.lr > 0 && recipe.lr < Infinity, "lr", "above 0", recipe.lr);
  should(recipe.weight_decay >= 0, "weight_decay", "0 or more", recipe.weight_decay);
}

/** Whether a training gives the same bits in every browser and in Python, as it does if nothing is said. */
function isRepeatable({ repeatable = true }) {
  return repeatable;
}

/** The type of a model's numbers; a repeatable training is in float64. */
export function numbersFor(recipe) {
  return isRepeatable(recipe) ? Float64Array : Float32Array;
}

/** A model on its way; `task` is made by streams.js. */
export class Training {
  constructor(model, task, recipe) {
    checkRecipe(recipe);
    const { betas, weight_decay: weightDecay } = recipe;
    this.model = model;
    this.task = task;
    this.recipe = recipe;
    this.optimizer = new AdamW(model.parameters, { betas, weightDecay });
    this.steps = 0; // taken
  }

  get isDone() {
    return this.steps === this.recipe.steps;
  }

  /** Learn from one batch; returns its loss before the step. */
  step() {
    const { model, task, recipe } = this;
    if (this.steps === 0) this.round(); // the first weights
    const sentences = Array.from({ length: recipe.batch }, () => task.next());
    const batch = model.pack(sentences, { onlyDue: true });
    const loss = model.loss(batch, model.forward(batch));
    const name = `the loss of step ${this.steps}`;
    should(Number.isFinite(loss), name, "finite: try a smaller lr", `${loss}`);
    model.backward(batch);
    this.optimizer.step(learningRate(recipe, this.steps));
    this.round();
    this.steps += 1;
    return loss;
  }

  round() {
    if (!isRepeatable(this.recipe)) return;
    for (const { values } of this.model.parameters) roundToGrid(values);
  }

  /** The digest of what was trained; null where nothing was, or not repeatably. */
  digest() {
    const hasOne = isRepeatable(this.recipe) && this.steps > 0;
    return hasOne ? digestOf(this.model.parameters) : null;
  }

  evaluate(options) {
    return evaluate(this.model, this.task.heldOut, this.task.relations, options);
  }
}
