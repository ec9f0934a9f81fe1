// What is said of trained weights that are cut into other heads, or put under another mask.

/**
 * How what is shown departs from what was trained, or nothing; `trained.causal` is null where no
 * training is claimed. As _origins.py has it.
 */
export function departure(trained, numHeads, causal) {
  const { num_heads: heads, heads: names = [] } = trained;
  const isTrained = trained.causal !== null;
  if (!isTrained && names.length === 0) return "";
  const ways = [];
  if (numHeads !== heads) {
    const kind = isTrained ? "trained" : "hand-built";
    ways.push(`cut anew from ${heads} ${kind} ${heads === 1 ? "head" : "heads"}`);
  }
  if (isTrained && causal !== trained.causal) {
    ways.push(causal ? "with a mask put on" : "with the mask taken off");
  }
  return ways.join(", ");
}

/** The sentence that stands before the origin of weights; none where nothing departs. */
export function sayDeparture(departs) {
  if (departs === "") return "";
  return `${departs[0].toUpperCase()}${departs.slice(1)}: nobody trained or built such heads. `;
}
