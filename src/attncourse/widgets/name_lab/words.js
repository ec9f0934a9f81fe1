// What NameLab says: of its heads, of a trained model, of what may come next.

import { headsInWords, nameOfRun } from "../lab/words.js";
import { many, shortNumber } from "../shared/numbers.js";

const TOLD = 3; // of the letters that may come next

/** A number of heads, and what it leaves each. */
export function sayHeads(count, { spec }) {
  const width = spec.d_model / count;
  return count === 1 ? `1 head, ${width} wide` : `${headsInWords(count)}, each ${width} wide`;
}

/** What a trained model has reached. */
export function sayLearned(run, { bigram, floor }) {
  const verb = run.state === "stopped" ? "Stopped" : "Trained";
  const at = run.state === "stopped" ? ` after ${many(run.steps, "step")}` : "";
  const { loss } = run.evaluation;
  return (
    `${verb} with ${nameOfRun(run)}${at}: loss ${loss.toFixed(2)} on names it never saw. The bigram ` +
    `has ${bigram.toFixed(2)}; a guesser who knows the rules has ${floor.toFixed(2)}.`
  );
}

/** Where a beginning ends, in words. */
export function sayPlace(beginning) {
  return beginning === "" ? "At the start of a name" : `After “${beginning}”`;
}

/** What a model expects after a beginning: `letters` are {name, chance}, likely ones first. */
export function sayNext({ beginning, letters }) {
  const likely = letters.slice(0, TOLD).map(({ name, chance }) => `${name} ${shortNumber(chance)}`);
  return `${sayPlace(beginning)} it expects ${likely.join(", ")}.`;
}
