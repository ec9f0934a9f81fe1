// What widgets say of trainings: what a model is called, and how far it is.

import { many, wholeText } from "../shared/numbers.js";

export function headsInWords(count) {
  return `${count} ${count === 1 ? "head" : "heads"}`;
}

/** What a head is called: its number, or "2.1" for the first one of layer 2 where there are several. */
export function nameOfHead(head, { numHeads, setting }) {
  if (setting.spec.blocks.length === 1) return `${head + 1}`;
  return `${Math.floor(head / numHeads) + 1}.${(head % numHeads) + 1}`;
}

/** The names of all heads of a model, those of one layer after the other. */
export function namesOfHeads(one) {
  const count = one.numHeads * one.setting.spec.blocks.length;
  return Array.from({ length: count }, (_, head) => nameOfHead(head, one));
}

/** What a run is called: its number of heads, what was chosen of its task, and how it began. */
export function nameOfRun({ setting, numHeads, seed, isGiven, state }) {
  const from = isGiven ? ", from your weights" : "";
  const began = state === "given" ? "as it came" : `seed ${seed}${from}`;
  const heads = headsInWords(numHeads) + (setting.perLayer ?? "");
  return [heads, setting.inWords, began].filter(Boolean).join(", ");
}

/** How a training stands, for eyes that follow it. One batch may cost less than any model can hope for. */
export function sayProgress(run, steps) {
  if (run === null) return "Not trained yet.";
  if (run.state === "given") return "Your model as it came: nothing was trained here.";
  const at = `step ${wholeText(run.steps)} of ${wholeText(steps)}`;
  const loss = run.losses.length > 0 ? `, batch loss ${run.losses.at(-1).toFixed(2)}` : "";
  const words = { training: "Training", paused: "Paused", stopped: "Stopped", failed: "Ended" };
  if (run.state !== "done") return `${words[run.state]}: ${at}${loss}.`;
  return `Trained: ${many(steps, "step")} in ${run.seconds.toFixed(1)} s${loss}.`;
}

/**
 * What is said while a model trains or rests, and when that fails or is gone; null once it is over. `name`
 * says what a run is called.
 */
export function sayBegin(run, isAgain, name) {
  if (run === null) return "";
  if (run.state === "failed") return run.problem.replace(/\.?$/, ".");
  if (run.state === "paused") return `Paused: ${name(run)}.`;
  if (run.state !== "training") return null;
  const again = "The link or saved state asks for this model, trained again here";
  return `${isAgain ? again : "Training"}: ${name(run)}.`;
}
