// HeadExplorer's sources: queries and keys with a name, and words that a reader brings along.

import { divisors } from "../shared/attention.js";
import { readerOf } from "../shared/state.js";

export const MOST_WORDS = 16; // also the width of a hand-built head: one column for each place
export const LONGEST_WORD = 40; // letters
const STRENGTH = 5; // the score of the token that a rule wants; all others have 0

const places = (words) => words.map((_, i) => i);

function sameWord(words) {
  const lower = words.map((word) => word.toLowerCase());
  return lower.map((word) => lower.indexOf(word));
}

/** For each rule, from the words: the columns that queries ask for, and those of the keys. */
const RULES = {
  "previous token": (words) => [words.map((_, i) => i - 1), places(words)],
  "same word": (words) => [sameWord(words), sameWord(words)],
  "first token": (words) => [words.map(() => 0), places(words)],
};

/** Queries and keys T x d of words by rules, as HeadSource.by_rules builds them in Python. */
export function ruledQueriesAndKeys(words, rules) {
  const d = MOST_WORDS * rules.length;
  const strength = STRENGTH * Math.sqrt(MOST_WORDS);
  const [q, k] = [0, 1].map(() => new Float64Array(words.length * d));
  rules.forEach((rule, head) => {
    const [asked, answers] = RULES[rule](words);
    const first = head * MOST_WORDS;
    asked.forEach((column, i) => {
      if (column >= 0) q[i * d + first + column] = strength;
    });
    answers.forEach((column, i) => (k[i * d + first + column] = 1));
  });
  return { q, k };
}

/** A sentence's words: what stands between spaces. */
export function wordsOf(text) {
  return text.split(/\s+/).filter((word) => word !== "");
}

function isSource(source) {
  const isText = (value) => typeof value === "string";
  const { name, origin, d, num_heads, heads, rules, causal } = source ?? {};
  return (
    [name, origin].every(isText) &&
    Number.isInteger(d) &&
    divisors(d).includes(num_heads) &&
    Array.isArray(heads) &&
    heads.every(isText) &&
    [0, num_heads].includes(heads.length) &&
    [true, false, null].includes(causal) &&
    (!rules || (d === MOST_WORDS * heads.length && heads.every((rule) => rule in RULES)))
  );
}

/** The sources of T tokens, each with its own part of q and k. */
export function readSources(model, T) {
  const read = readerOf(model);
  const sources = read.list("sources", isSource, "sources with name, origin, d and heads");
  const columns = sources.reduce((sum, { d }) => sum + d, 0);
  const [q, k] = ["q", "k"].map((name) => read.numbers(name, T * columns));
  let start = 0;
  return sources.map((source) => {
    const end = start + T * source.d;
    const own = { ...source, q: q.subarray(start, end), k: k.subarray(start, end) };
    start = end;
    return own;
  });
}
