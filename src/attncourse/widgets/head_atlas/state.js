// HeadAtlas's numbers: its state, checked, and what a view reads of it. A head is layer * h + head.

import { readerOf } from "../shared/state.js";

const NO_KEY = 65535;
const MOST_STEPS = 100; // of the slider that leaves out heads
const FAINT = 0.005; // a weight that rounds to 0.00 isn't worth a line beside large ones
const ORDERS = ["layers", "highest", "lowest"];
const SHARES = Float64Array.from({ length: 256 }, (_, root) => (root / 255) ** 2);

/** What is known of a score besides its numbers. */
function isPattern(value) {
  const { name, rule, texts, rows, lower, offsets } = value ?? {};
  const areTexts = [name, rule].every((text) => typeof text === "string");
  const areOffsets = Array.isArray(offsets) && offsets.every(Number.isInteger);
  return (
    areTexts && [texts, rows].every(Number.isInteger) && typeof lower === "boolean" && areOffsets
  );
}

/** What a model holds, checked. */
export function checkedState(model) {
  const read = readerOf(model);
  const [h, T, cells, k] = read.counts("h", "T", "cells", "k");
  const isCount = (value) => Number.isInteger(value) && value >= 0;
  const isText = (value) => typeof value === "string";
  const layers = read.list("layers", isCount, "whole numbers from 0");
  const heads = layers.length * h;
  const patterns = read.list("patterns", isPattern, "scores with name and rule");
  const keys = read.places("top_keys", heads * T * k, NO_KEY + 1);
  if (keys.some((key) => key >= T && key !== NO_KEY)) {
    throw new Error(`top_keys should be places from 0 to ${T - 1}, but one is beyond`);
  }
  const hasNorms = model.get("value_norms")?.byteLength > 0;
  read.index("score", patterns.length);
  read.index("head", heads);
  read.index("token", T);
  read.read("order", (order) => ORDERS.includes(order), `one of ${ORDERS.join(", ")}`);
  const isStep = (step) => isCount(step) && step <= MOST_STEPS;
  read.read("above", isStep, `a whole number from 0 to ${MOST_STEPS}`);
  const isPin = (head) => head === -1 || (isCount(head) && head < heads);
  read.read("pinned", isPin, `one of 0 to ${heads - 1}, or -1`);
  return {
    h,
    T,
    cells,
    k,
    heads,
    layers,
    patterns,
    keys,
    name: read.text("name"),
    about: read.list("about", isText, "sentences"),
    layerNames: read.texts("layer_names", layers.length),
    tokens: read.texts("tokens", T),
    causal: Boolean(model.get("causal")),
    perCell: Math.ceil(T / cells), // tokens
    scores: read.numbers("scores", 3 * patterns.length * heads),
    maps: read.bytes("maps", heads * cells ** 2),
    weights: read.places("top_weights", heads * T * k, NO_KEY + 1),
    norms: hasNorms ? read.numbers("value_norms", heads * T) : null,
  };
}

/** A head's score: {mean, spread, baseline, better, offset}; `better` than the baseline by so much. */
export function scoreOf({ scores, heads, patterns }, pattern, head) {
  const [mean, spread, baseline] = [0, 1, 2].map((i) => scores[(3 * pattern + i) * heads + head]);
  const { lower, offsets } = patterns[pattern];
  const better = lower ? baseline - mean : mean - baseline;
  return { mean, spread, baseline, better, offset: offsets[head] ?? null };
}

/**
 * By how much each head's score beats its baseline, in steps: their size, how many there are, and
 * whether `isBeaten`. A baseline that is the pattern itself no head beats: then it is by how much a
 * score is above 0.
 */
export function leadsOf(state, pattern) {
  const all = Array.from({ length: state.heads }, (_, head) => scoreOf(state, pattern, head));
  const isBeaten = all.some(({ better }) => better > 0);
  const { lower } = state.patterns[pattern];
  const leads = all.map(({ better, mean }) => (isBeaten || lower ? better : mean));
  const most = Math.max(0, ...leads);
  const size = most > 1 ? 0.25 : 0.05;
  return { leads, size, last: Math.ceil(most / size - 1e-9), isBeaten };
}

/** The heads that are shown, in order. */
export function shownHeads(state, { score, order, above }) {
  const { leads, size, last } = leadsOf(state, score);
  const step = Math.min(above, last);
  const all = Array.from({ length: state.heads }, (_, head) => head);
  const shown = step > 0 ? all.filter((head) => leads[head] > (step - 1) * size) : all;
  if (order === "layers") return shown;
  const sign = order === "highest" ? -1 : 1;
  const means = all.map((head) => scoreOf(state, score, head).mean);
  return shown.sort((a, b) => sign * (means[a] - means[b]) || a - b);
}

/** How many tokens there are that a token may look at. */
export function mayLook({ causal, T }, token) {
  return causal ? token + 1 : T;
}

/** The tokens of a cell of a map: the first, and the one after the last. */
export function tokensOf({ perCell, T }, cell) {
  return [cell * perCell, Math.min(T, (cell + 1) * perCell)];
}

/** A head's map: shares [cells, cells], times the mean length of each cell's values if `valued`. */
export function sharesOf(state, head, valued) {
  const { cells } = state;
  const shares = unpacked(state, head * cells ** 2, cells ** 2);
  if (!valued) return shares;
  const lengths = Array.from({ length: cells }, (_, cell) => meanLength(state, head, cell));
  for (let row = 0; row < cells; row++) {
    const own = shares.subarray(row * cells, (row + 1) * cells);
    for (let cell = 0; cell < cells; cell++) own[cell] *= lengths[cell];
    toShares(own);
  }
  return shares;
}

/** Shares of the maps, from one on. */
function unpacked({ maps }, first, count) {
  const shares = new Float64Array(count);
  for (let i = 0; i < count; i++) shares[i] = SHARES[maps[first + i]];
  return shares;
}

function meanLength(state, head, cell) {
  const [first, end] = tokensOf(state, cell);
  const lengths = state.norms.subarray(head * state.T + first, head * state.T + end);
  return lengths.reduce((a, b) => a + b) / lengths.length;
}

/** Make numbers sum to 1, unless all are 0. */
function toShares(numbers) {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += numbers[i];
  if (sum > 0) for (let i = 0; i < numbers.length; i++) numbers[i] /= sum;
}

/** The largest weights of a token's row: {key, weight}, from the largest on. */
function largestWeights({ T, k, keys, weights }, head, token) {
  const first = (head * T + token) * k;
  const all = Array.from({ length: k }, (_, i) => ({
    key: keys[first + i],
    weight: weights[first + i] / NO_KEY,
  }));
  return all.filter(({ key }) => key !== NO_KEY);
}

/** A token's whole row, where each token has a cell of its own; `valued` as shares of 1. */
export function wholeRow(state, head, token, valued) {
  const { norms, T } = state;
  const row = unpacked(state, (head * T + token) * T, T);
  for (const { key, weight } of largestWeights(state, head, token)) row[key] = weight; // exact
  if (!valued) return row;
  row.forEach((weight, key) => (row[key] = weight * norms[head * T + key]));
  toShares(row);
  return row;
}

/**
 * What a token looks at: `largest`, {key, weight} from the largest on, and the `rest` of the row, of
 * so many `others`. Of weights times lengths the rest is null where a cell holds several tokens and
 * some weights aren't known: then shares are of those that are.
 */
export function rowOf(state, head, token, valued) {
  let largest = largestWeights(state, head, token);
  if (largest.length === 0) return { largest, others: 0, rest: 0 }; // it may look nowhere
  const isWhole = state.perCell === 1 || largest.length === mayLook(state, token);
  if (valued && state.perCell === 1) {
    const row = Array.from(wholeRow(state, head, token, true), (weight, key) => ({ key, weight }));
    largest = byWeight(row.filter(({ weight }) => weight > 0)).slice(0, state.k);
  } else if (valued) {
    const products = largest.map(({ key, weight }) => weight * state.norms[head * state.T + key]);
    toShares(products);
    largest = byWeight(largest.map(({ key }, i) => ({ key, weight: products[i] })));
  }
  const least = Math.min(FAINT, (largest[0]?.weight ?? 0) / 10);
  largest = largest.filter(({ weight }) => weight >= least);
  const others = mayLook(state, token) - largest.length;
  const sum = largest.reduce((total, { weight }) => total + weight, 0);
  return { largest, others, rest: !valued || isWhole ? Math.max(0, 1 - sum) : null };
}

const byWeight = (row) => row.sort((a, b) => b.weight - a.weight);
