// The error function.

/**
 * The error function, to a double's precision: a series of positive terms, so that none cancels
 * another (Abramowitz & Stegun 1964, 7.1.6); beyond 6 it can't be told from 1.
 */
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}
