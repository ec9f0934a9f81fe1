// What BuildABlock says of wirings and of numbers.

import { withMinus } from "../shared/numbers.js";

/** Sizes between these are called healthy. */
export const HEALTHY = [1e-2, 1e2];

/** What the numbers of a panel are called in words, by the lower end of each range. */
export const WORDS = {
  size: [
    [0, "vanished"],
    [1e-6, "vanishing"],
    [HEALTHY[0], "healthy"],
    [HEALTHY[1], "exploding"],
    [1e6, "exploded"],
  ],
  cosine: [
    [-2, "the tokens are well apart"],
    [0.5, "the tokens drift together, but are still apart"],
    [0.99, "all tokens point the same way"],
  ],
};

/** The middle number, or the lower of the two in the middle, as torch.median has it. */
export function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[(numbers.length - 1) >> 1];
}

/** "2.1e−4", "0.42", "14.1" for sizes; three decimals for a cosine. */
export function numberText(value, kind) {
  const isLong = value < 0.01 || value >= 1000;
  const sizeText = () => (isLong ? value.toExponential(1) : String(Number(value.toPrecision(3))));
  const text = kind === "cosine" ? value.toFixed(3) : sizeText();
  return withMinus(text);
}

/** What a number is called in words. */
export function meaningOf(value, kind) {
  return WORDS[kind].findLast(([from]) => value >= from)[1];
}

/** What a wiring is called. */
export function variantName(residual, norm) {
  if (residual) return norm ? `${norm}-norm` : "residual only";
  return { pre: "norm only, before", post: "norm only" }[norm] ?? "neither";
}

/** A wiring as a formula. */
export function formula(residual, norm) {
  const answer = norm === "pre" ? "f(norm(x))" : "f(x)";
  const sum = residual ? `x + ${answer}` : answer;
  return norm === "post" ? `norm(${sum})` : sum;
}
