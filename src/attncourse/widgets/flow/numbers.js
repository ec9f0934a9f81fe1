// Flow's numbers: every matrix of multi-head attention, each number with those it was computed from.

import { softmaxInPlace } from "../shared/attention.js";

/** What `make(0)`, `make(1)`, ... return. */
export function times(count, make) {
  return Array.from({ length: count }, (_, i) => make(i));
}

/**
 * All matrices by their names, numbers row by row: {values, columns, parts, width, terms}. Columns
 * come in `parts` of equal `width`, one per head, or in one part.
 *
 * `terms(i)` tells what number i was computed from, as products of numbers that are named by their
 * matrix and place: [[["x", 0], ["w_q", 0]], [["x", 1], ["w_q", 4]]]. A given number has no terms.
 * So what is shown as the origin of a number is what it was computed from.
 */
export function computeAll({ T, d, numHeads, causal, given }) {
  const width = d / numHeads; // d_k
  const side = numHeads * T; // columns of all heads' T x T maps
  const all = {};

  function add(name, columns, parts, values, terms = () => []) {
    all[name] = { values, columns, parts, width: columns / parts, terms };
  }
  function sumOfProducts(name, columns, parts, termsAt) {
    const terms = (i) => termsAt(Math.floor(i / columns), i % columns);
    const product = (term) => term.reduce((sofar, [from, at]) => sofar * all[from].values[at], 1);
    const sum = (i) => terms(i).reduce((sofar, term) => sofar + product(term), 0);
    add(
      name,
      columns,
      parts,
      Float64Array.from({ length: T * columns }, (_, i) => sum(i)),
      terms,
    );
  }
  function project(name, rows, by, parts) {
    sumOfProducts(name, d, parts, (row, column) =>
      times(d, (c) => [
        [rows, row * d + c],
        [by, c * d + column],
      ]),
    );
  }
  /** As many numbers as another matrix has, each made of the one in its place. */
  function change(name, from, make) {
    const { values, columns, parts } = all[from];
    add(name, columns, parts, values.map(make), (i) => [[[from, i]]]);
  }

  add("x", d, 1, given.x);
  for (const name of ["w_q", "w_k", "w_v"]) add(name, d, numHeads, given[name]);
  add("w_o", d, 1, given.w_o);
  for (const letter of "qkv") project(letter, "x", `w_${letter}`, numHeads);
  sumOfProducts("scores", side, numHeads, (row, column) => {
    const [head, key] = [Math.floor(column / T), column % T];
    return times(width, (c) => [
      ["q", row * d + head * width + c],
      ["k", key * d + head * width + c],
    ]);
  });
  change("scaled", "scores", (score) => score / Math.sqrt(width));
  const isFuture = (i) => i % T > Math.floor(i / side);
  change("masked", "scaled", (score, i) => (causal && isFuture(i) ? -Infinity : score));
  const weights = Float64Array.from(all.masked.values);
  for (let at = 0; at < weights.length; at += T) softmaxInPlace(weights.subarray(at, at + T));
  add("weights", side, numHeads, weights, (i) => times(T, (j) => [["masked", i - (i % T) + j]]));
  sumOfProducts("heads", d, numHeads, (row, column) =>
    times(T, (j) => [
      ["weights", row * side + Math.floor(column / width) * T + j],
      ["v", j * d + column],
    ]),
  );
  change("joined", "heads", (number) => number);
  project("output", "joined", "w_o", 1);
  return all;
}
