// Weights on a grid, as attnlib.training has them: why a browser trains, bit for bit, torch's models.
//
// Processors and browsers add the same numbers in other orders, and their exp differs in its last bit.
// Rounding all weights after each step wipes such differences out before they can grow.

export const GRID = 2 ** -20;
const ROUNDER = 1.5 * 2 ** 52 * GRID; // a double of this size has its last bit at the grid

/** Round doubles to multiples of the grid, half to even; -0 becomes 0. */
export function roundToGrid(values) {
  for (let i = 0; i < values.length; i++) values[i] = values[i] + ROUNDER - ROUNDER;
}

/**
 * Promises the digest of weights on the grid, a SHA-256 in hexadecimal: of their whole multiples as
 * int32, the lowest byte first, one parameter after the other. Null where a browser lets nobody hash:
 * on a page that came from another machine without encryption.
 */
export const digestOf = async (parameters) => {
  if (globalThis.crypto?.subtle === undefined) return null;
  const size = parameters.reduce((sum, { values }) => sum + values.length, 0);
  const view = new DataView(new ArrayBuffer(4 * size));
  let at = 0;
  for (const { values } of parameters) {
    for (const value of values) {
      view.setInt32(at, value / GRID, true);
      at += 4;
    }
  }
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", view.buffer));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
};
