// HeadAtlas's words: what heads and tokens are called.

import { plainNumber, shortNumber } from "../shared/numbers.js";
import { tellApart } from "../shared/token_map.js";

const SIGNS = { " ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥" };
const UNSEEN = /^[\p{Z}\p{C}]*$/u;
const SPACES = /[\n\r\t]|^ +| +$/g; // within a text a space is seen

/** A token as it is read, also where nothing of it would be seen. */
function readable(token) {
  if (token === "") return "(empty)";
  const text = token.replace(SPACES, (found) => Array.from(found, (sign) => SIGNS[sign]).join(""));
  if (!UNSEEN.test(text)) return text;
  const code = (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return Array.from(text, code).join(" ");
}

/** Names of heads, tokens and cells. */
export function createNames({ layers, h, tokens, perCell, T }) {
  const texts = tokens.map(readable);
  const named = tellApart(texts);
  const layer = (head) => layers[Math.floor(head / h)] + 1;
  function cell(i) {
    if (perCell === 1) return named(i);
    const [first, last] = [i * perCell, Math.min(T, (i + 1) * perCell) - 1];
    return first === last ? named(first) : `${texts[first]} … ${texts[last]} (${first}–${last})`;
  }
  return {
    texts,
    token: named,
    cell,
    short: (head) => `${layer(head)}.${(head % h) + 1}`,
    head: (head) => `layer ${layer(head)}, head ${(head % h) + 1}`,
  };
}

/** "Layer 5, head 2" */
export function asTitle(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** A score with its spread: "0.93 ± 0.02", and the offset that it is for. */
export function scoreText({ mean, spread, offset }) {
  const at = offset === null ? "" : ` at ${plainNumber(offset)}`;
  return `${shortNumber(mean)} ± ${shortNumber(spread)}${at}`;
}
