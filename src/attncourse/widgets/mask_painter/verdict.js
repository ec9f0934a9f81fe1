// MaskPainter's verdict: who sees a later token, who sees nothing, and whether that is wrong.

import { element } from "../shared/dom.js";
import { inWords } from "../shared/numbers.js";
import { createNote } from "../shared/parts.js";

/** For each row that may look to its right: {row, columns}, the later tokens that it sees. */
export function leaks(mask, T) {
  const indices = Array.from({ length: T }, (_, i) => i);
  return indices
    .map((row) => ({ row, columns: indices.filter((j) => j > row && mask[row * T + j]) }))
    .filter(({ columns }) => columns.length > 0);
}

/** The rows that may look nowhere. */
export function blindRows(mask, T) {
  const rows = Array.from({ length: T }, (_, i) => i);
  return rows.filter((i) => !mask.slice(i * T, (i + 1) * T).includes(true));
}

/** How many looks at the past, or of a token at itself, are blocked. */
function blockedWithoutNeed(mask, T) {
  return mask.filter((mayLook, cell) => !mayLook && cell % T <= Math.floor(cell / T)).length;
}

/** What is to be said of a mask first. */
function judge(found, mask, { blind, isCausal, isUnsolved }) {
  const T = Math.sqrt(mask.length);
  const count = found.reduce((sum, { columns }) => sum + columns.length, 0);
  const looks = `${count} ${count === 1 ? "look" : "looks"}`;
  if (blind.length === T) return "Nobody sees anything: every output is 0";
  if (isCausal && count > 0) return `Leak: ${looks} into the future`;
  const blocked = isCausal && isUnsolved ? blockedWithoutNeed(mask, T) : 0;
  if (blocked > 0) {
    return `No leak; but ${blocked} ${blocked === 1 ? "look is" : "looks are"} blocked needlessly`;
  }
  if (isCausal) return "No leak: every token sees only itself and the past";
  if (count === 0) return "Nobody looks to the right";
  return `${looks} to the right: as in an encoder, where that is no leak`;
}

/** Says what is wrong with a mask that is meant to be causal, and which tokens see nothing. */
export function createVerdict(tokens) {
  const summary = element("p", { class: "attn-summary", role: "status" });
  const list = element("ul");
  const counted = createNote("Tokens are counted from 0.");
  const node = element("div", { class: "attn-alarm" }, summary, list, counted);
  const called = (i) => `token ${i} "${tokens[i]}"`;

  function sees({ row, columns }) {
    const seen = columns.length === 1 ? called(columns[0]) : `tokens ${inWords(columns)}`;
    return `${called(row)} can see ${seen}`;
  }

  function draw(mask, findings) {
    const { blind, isCausal, isUnsolved } = findings;
    const found = leaks(mask, tokens.length);
    const isEmpty = blind.length === tokens.length;
    summary.textContent = judge(found, mask, findings);
    node.classList.toggle("attn-leaking", isCausal && found.length > 0);
    const lines = [
      ...(isCausal && !isUnsolved ? found.map(sees) : []),
      ...(isEmpty ? [] : blind.map((i) => `${called(i)} looks nowhere: output 0`)),
    ];
    list.replaceChildren(...lines.map((line) => element("li", { dir: "auto" }, line)));
    counted.hidden = lines.length === 0;
  }
  return { node, draw };
}
