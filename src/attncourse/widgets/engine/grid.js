// Weights on a grid, as attncourse.training has them: why a browser trains, bit for bit, torch's models.
//
// Processors and browsers add the same numbers in other orders, and their exp differs in its last bit.
// Rounding all weights after each step wipes such differences out before they can grow.

import { sha256 } from "./sha256.js";

const GRID = 2 ** -20;
const ROUNDER = 1.5 * 2 ** 52 * GRID; // a double of this size has its last bit at the grid

/** Round doubles to multiples of the grid, half to even; -0 becomes 0. */
export function roundToGrid(values) {
  for (let i = 0; i < values.length; i++) values[i] = values[i] + ROUNDER - ROUNDER;
}

/**
 * The digest of weights on the grid, a SHA-256 in hexadecimal: of their whole multiples as int32, the
 * lowest byte first, one parameter after the other.
 */
export function digestOf(parameters) {
  const all = parameters.flatMap(({ values }) => [...values]);
  const view = new DataView(new ArrayBuffer(4 * all.length));
  all.forEach((value, i) => view.setInt32(4 * i, value / GRID, true));
  return sha256(view.buffer);
}
