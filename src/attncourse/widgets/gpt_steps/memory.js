// What GptSteps' loop has in its lists at a moment.

import { largestOf } from "../shared/attention.js";
import { hasRun, hasRunFor } from "./lines.js";

/** The lists of the token that is read, in the order of the code. */
export const VECTORS = ["x", "a", "q", "k", "v", "joined", "o", "m", "hidden"];
const X = ["embed", "residual_1", "residual_2"]; // the lines that make x
const LINE_OF = { a: "norm_1", q: "q", k: "k", v: "v", o: "output", m: "norm_2", hidden: "hidden" };
const CACHES = { keys: ["append_k", "k"], values: ["append_v", "v"] };

/** Rows and columns of each list, as it is drawn; T columns are the tokens so far. */
export function shapesOf({ V, d, h, hidden }, T) {
  const vectors = VECTORS.map((list) => [list, [d, list === "hidden" ? Math.ceil(hidden / d) : 1]]);
  return {
    ...Object.fromEntries(vectors),
    keys: [d, T],
    values: [d, T],
    scores: [h, T],
    weights: [h, T],
    logits: [1, V],
    chances: [1, V],
  };
}

/** What a list holds after the line `now.line`: a number for a row and a column, or undefined. */
export function memoryAt(walked, now, { d, width }) {
  const token = walked[now.token];
  const run = (line) => hasRun(line, now);

  function vector(list) {
    if (list === "x") return token[X.findLast(run)];
    return run(LINE_OF[list]) ? token[LINE_OF[list]] : undefined;
  }
  return function at(list, row, column) {
    if (list in CACHES) {
      const [line, made] = CACHES[list];
      const isThere = column < now.token || (column === now.token && run(line));
      return isThere ? walked[column][made][row] : undefined;
    }
    if (list === "joined") {
      const head = Math.floor(row / width);
      return hasRunFor(head, "mix", now) ? token.joined[row] : undefined;
    }
    if (list === "scores" || list === "weights") {
      return hasRunFor(row, list, now) ? token[list][row][column] : undefined;
    }
    if (list === "logits" || list === "chances") {
      return run(list) ? token[list][column] : undefined;
    }
    return vector(list)?.[column * d + row];
  };
}

/** The largest size of a number in each list, over the whole name: what its colors go up to. */
export function largestIn(walked) {
  const lines = {
    ...Object.fromEntries(Object.entries(LINE_OF).map(([list, line]) => [list, [line]])),
    ...{ x: X, joined: ["joined"], keys: ["k"], values: ["v"], scores: ["scores"] },
    ...{ logits: ["logits"] },
  };
  return Object.fromEntries(
    Object.entries(lines).map(([list, made]) => {
      const all = walked.flatMap((token) => made.flatMap((line) => token[line].flat()));
      return [list, largestOf(all.map(Math.abs)) || 1];
    }),
  );
}
