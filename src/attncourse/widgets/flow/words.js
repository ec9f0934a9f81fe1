// Flow's words: what each step does, and where a number came from, as a sum that is written out.

import { element } from "../shared/dom.js";
import { plainNumber, shortNumber } from "../shared/numbers.js";

/** The steps: the matrix that each makes, what it makes it of, and what it does. */
export const STEPS = [
  { makes: "x", of: [], name: "tokens", formula: "X" },
  { makes: "q", of: ["x", "w_q"], name: "queries", formula: "Q = X W_q" },
  { makes: "k", of: ["x", "w_k"], name: "keys", formula: "K = X W_k" },
  { makes: "v", of: ["x", "w_v"], name: "values", formula: "V = X W_v" },
  { makes: "scores", of: ["q", "k"], name: "scores", formula: "Q K^T" },
  { makes: "scaled", of: ["scores"], name: "scaled", formula: "Q K^T / √d_k" },
  { makes: "masked", of: ["scaled"], name: "mask", formula: "" },
  { makes: "weights", of: ["masked"], name: "weights", formula: "softmax" },
  { makes: "heads", of: ["weights", "v"], name: "mix", formula: "weights V" },
  { makes: "joined", of: ["heads"], name: "join", formula: "" },
  { makes: "output", of: ["joined", "w_o"], name: "output", formula: "joined W_o" },
];

/** What a step does, in a sentence. */
export function sayStep(makes, { numHeads, causal, width }) {
  const each = numHeads > 1 ? "In each head, each" : "Each";
  return {
    x: "Given, as are the matrices W: one row per token.",
    q: "What each token asks: its row of X meets each column of the matrix.",
    k: "What each token is found by, made like the queries.",
    v: "What each token hands over, made like the queries.",
    scores: `${each} query meets each key: a dot product, one row per query.`,
    scaled: `Divided by √${width}, for d_k = ${width}: so scores don't grow with the width.`,
    masked: causal
      ? "No token may look at those that come after it: their scores become −∞."
      : "No mask: every token may look at every token. Tick Causal to forbid looks ahead.",
    weights: "Softmax turns each row of scores into shares that sum to 1.",
    heads: "Each row of weights mixes the values of its head.",
    joined: "The heads' results, side by side: one row per token.",
    output: "The first step in which heads meet: each output draws on all of them.",
  }[makes];
}

/**
 * How matrices are called, and whose rows they have where those aren't tokens that look. Those that
 * stand `apart` have a table per head; a `map` has a column per token.
 */
export const MATRICES = {
  x: { symbol: "X" },
  w_q: { symbol: "W_q" },
  w_k: { symbol: "W_k" },
  w_v: { symbol: "W_v" },
  w_o: { symbol: "W_o" },
  q: { symbol: "Q" },
  k: { symbol: "K", role: "attn-key" },
  v: { symbol: "V", role: "attn-key" },
  scores: { symbol: "scores", apart: true, map: true },
  scaled: { symbol: "scaled", apart: true, map: true },
  masked: { symbol: "masked", apart: true, map: true },
  weights: { symbol: "weights", apart: true, map: true },
  heads: { symbol: "result", apart: true },
  joined: { symbol: "joined" },
  output: { symbol: "output" },
};

/** "Q K^T / √d_k" as nodes: letters lean, indices are lowered or raised. */
export function formula(text) {
  return text.split(/( )/).flatMap((word) => {
    const [, root, letter, mark, index] = word.match(/^(√?)(\w)([_^])?(\w)?$/) ?? [];
    if (letter === undefined) return [word];
    const small = index ? [element(mark === "^" ? "sup" : "sub", {}, index)] : [];
    return [root, element("i", {}, letter), ...small];
  });
}

/** A number as it stands in its matrix. */
export function textIn(matrix, number) {
  return matrix === "weights" ? shortNumber(number) : plainNumber(number);
}

/** Whether the two decimals that are shown are all of a number, as far as float32 can tell. */
function isShownWhole(number) {
  return Math.abs(number) < 1e5 && Math.abs(number - Number(number.toFixed(2))) < 1e-6;
}

/** What number `at` of a matrix was computed from, as nodes: "1.61 ≈ 0.80·2 + 0.20·0". */
export function sayOrigin(all, name, at, width) {
  const number = all[name].values[at];
  const terms = all[name].terms(at);
  const used = terms.flat().map(([from, i]) => all[from].values[i]);
  const textOf = ([from, i]) => textIn(from, all[from].values[i]);
  const factor = (term) => (textOf(term).startsWith("\u2212") ? `(${textOf(term)})` : textOf(term));
  const power = (text) => element("span", {}, "e", element("sup", {}, text));
  const shown = element("strong", {}, textIn(name, number));
  const equals = (isExact) => (isExact ? " = " : " ≈ ");

  if (terms.length === 0) return [shown, " is given."];
  if (number === -Infinity) return [shown, ` in place of ${textOf(terms[0][0])}: a look ahead.`];
  if (name === "scaled") {
    const isExact = [number, ...used].every(isShownWhole);
    return [shown, equals(isExact), `${textOf(terms[0][0])} / √${width}`];
  }
  if (name === "weights") {
    const allowed = used.filter(Number.isFinite); // alike, they share alike
    const isExact = isShownWhole(number) && allowed.every((score) => score === allowed[0]);
    const powers = terms.flatMap(([term], j) => [j > 0 ? " + " : "", power(textOf(term))]);
    return [
      shown,
      equals(isExact),
      power(textIn("masked", all.masked.values[at])),
      " / (",
      ...powers,
      ")",
    ];
  }
  if (name === "masked") return [shown, " stays: this look is allowed."];
  if (name === "joined") {
    const [head, column] = [Math.floor((at % all.joined.columns) / width), at % width];
    return [shown, ` is number ${column + 1} of head ${head + 1}'s result.`];
  }
  const isExact = [number, ...used].every(isShownWhole);
  return [shown, equals(isExact), terms.map((term) => term.map(factor).join("·")).join(" + ")];
}

/** What a number is, as nodes; `place` is its row, head and column in that head. */
export function sayWhere(name, [row, head, column], { numHeads, tokenAt }) {
  const token = (i, role) => element("bdi", { class: role }, tokenAt(i));
  const inHead = numHeads > 1 ? ` in head ${head + 1}` : "";
  const number = `number ${column + 1}`;
  const { symbol, map, role = "attn-query" } = MATRICES[name];
  if (name.startsWith("w_")) {
    const from = name === "w_o" ? "" : inHead;
    return [...formula(symbol), `, row ${row + 1}, column ${column + 1}${from}: `];
  }
  if (map) {
    return [token(row, "attn-query"), " looks at ", token(column, "attn-key"), `${inHead}: `];
  }
  if (["x", "joined", "output"].includes(name)) return [token(row, "attn-query"), `, ${number}: `];
  return [token(row, role), `, ${number}${inHead}: `];
}
