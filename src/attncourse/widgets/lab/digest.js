// Which model a training has made: its digest, and how to make it once more.

import { element } from "../shared/dom.js";
import { createNote } from "../shared/parts.js";
import { nameOfRun } from "./words.js";

const SHOWN = 8; // digits, of 64: enough to tell models apart

/** The digits by which a trained model is named; "" before its training is over, or where it has none. */
export function digitsOf(run) {
  return run?.digest?.slice(0, SHOWN) ?? "";
}

/** Whether a value is such digits, or none. */
export function areDigits(value) {
  return typeof value === "string" && /^([0-9a-f]{8})?$/.test(value);
}

/** Whether a value is the digits of models, by their numbers of heads and seeds. */
export function areDigests(value) {
  return typeof value === "object" && value !== null && Object.values(value).every(areDigits);
}

/** The command that trains a run's model with torch; null where it takes more than a command. */
function commandOf({ setting: { command, recipe }, numHeads, seed, isGiven, state, steps }) {
  if (!command || isGiven) return null;
  const heads = numHeads === recipe.model.num_heads ? "" : ` --heads ${numHeads}`;
  const stop = state === "stopped" ? ` --stop ${steps}` : "";
  return `python -m attncourse.training ${command} --seed ${seed}${heads}${stop}`;
}

/** What is known of a run's model: which it is, as paragraphs. */
export function digestNotes(run) {
  const digits = digitsOf(run);
  if (digits === "") return [];
  const { setting, numHeads, seed, isGiven, state } = run;
  const code = (...parts) => element("code", {}, ...parts);
  const which = createNote(`Digest of ${nameOfRun(run)}: `);
  which.append(code(element("strong", {}, digits), run.digest.slice(SHOWN)));
  const command = commandOf(run);
  if (command !== null) {
    which.append(". Your browser trained, bit for bit, what ", code(command), " trains.");
  }
  const known = state === "done" && !isGiven && setting.digests?.[`${numHeads} ${seed}`];
  if (known) {
    which.append(
      known === digits
        ? " The course has trained it, too, and has the same digest."
        : ` The course has trained it, too, and its digest is ${known}: somewhere a number was rounded differently.`,
    );
  }
  which.classList.add("attn-digest");
  return [which];
}

/** Whether a run is the model that a link or saved state names by its digits; "" where it names none. */
export function sayNamed(run, named) {
  const digits = digitsOf(run);
  if (digits === "" || named === "") return "";
  return digits === named
    ? ` It is, bit for bit, the model that the link or saved state names: ${named}.`
    : ` The link or saved state names another model: ${named}. This one is ${digits}.`;
}
