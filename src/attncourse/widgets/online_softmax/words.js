// What OnlineSoftmax says of a step, and of the output at the end.

import { largestOf } from "../shared/attention.js";
import { plainNumber, withMinus } from "../shared/numbers.js";
import { differenceOf } from "./steps.js";

const SLACK = 1e-5; // of the values' size: float32 keeps about seven digits

/** A factor or an exponential with three digits that count. */
export function shortFactor(number) {
  const isPlain = number === 0 || (number >= 1e-3 && number < 1e4);
  return isPlain ? String(Number(number.toPrecision(3))) : plainNumber(number);
}

/** "(1.5, −2)" */
export function vectorText(vector) {
  return `(${Array.from(vector, plainNumber).join(", ")})`;
}

function sayRise(before, largest, method) {
  const [from, to] = [before, largest].map(plainNumber);
  const rise = `a larger score, ${to} instead of ${from}`;
  if (method === "no rescaling") {
    const tooMuch = shortFactor(Math.exp(largest - before));
    return (
      `${rise}. But what came before still counts as if ${from} were the largest: ` +
      `exp(${to} \u2212 ${from}) = ${tooMuch} times too much.`
    );
  }
  const factor = shortFactor(Math.exp(before - largest));
  return `${rise}. So all that came before is multiplied by exp(${from} \u2212 ${to}) = ${factor}.`;
}

/** What exponentials become when nothing is subtracted first. */
function sayExponentials(scores, { counts, end, sum }, before) {
  const first = before.end;
  const own = scores.subarray(first, end);
  const most = largestOf(own);
  if (most === -Infinity) return "all of it is masked, and adds nothing.";
  const power = `exp(${plainNumber(most)})`;
  const count = counts[first + own.indexOf(most)];
  if (count === Infinity) {
    return `${power} is larger than float32's largest number, 3.4e38, and becomes infinity.`;
  }
  if (count === 0) return `${power} is smaller than float32's smallest number, and becomes 0.`;
  const overflows = sum === Infinity && before.sum < Infinity;
  const total = overflows ? " The sum is too large for float32, and becomes infinity." : "";
  return `the largest of its exponentials is ${power} = ${shortFactor(count)}.${total}`;
}

/** What one step does, in a sentence. */
export function sayStep({ scores, method }, steps, at) {
  if (at === 0) return "Nothing is read yet: there is no largest score, and the sum is 0.";
  const [before, step] = [steps[at - 1], steps[at]];
  const name = `Block ${at} of ${steps.length - 1}`;
  if (method === "no maximum") {
    return `${name}: ${sayExponentials(scores, step, before)}`;
  }
  const { largest } = step;
  if (largest === -Infinity) {
    return `${name}: all scores so far are masked. There is no largest one, and the sum is 0.`;
  }
  if (before.largest === -Infinity) return `${name}: the largest score is ${plainNumber(largest)}.`;
  if (largest > before.largest) return `${name}: ${sayRise(before.largest, largest, method)}`;
  return `${name}: no score is larger than ${plainNumber(largest)}, so there is nothing to rescale.`;
}

/** Whether the output at the end is the plain softmax's, in a sentence. */
export function sayVerdict({ values, method }, last, plain) {
  const found = vectorText(last.output);
  const difference = differenceOf(last.output, plain.output);
  if (Number.isNaN(difference)) {
    const parts = last.sum === 0 ? "0 / 0" : "What is computed with infinity";
    return `${parts} isn't a number (NaN). The plain softmax gives ${vectorText(plain.output)}.`;
  }
  const size = Math.max(1, ...values.map(Math.abs));
  if (difference > SLACK * size) {
    return (
      `All blocks are read. The output ${found} is wrong by ${shortFactor(difference)}: ` +
      `the plain softmax gives ${vectorText(plain.output)}.`
    );
  }
  const agreement =
    difference === 0
      ? "to the last digit"
      : `except for ${withMinus(difference.toExponential(0))}, which is float32's rounding`;
  const isRightSum = Math.abs(last.sum - plain.sum) <= SLACK * plain.sum;
  const luck = {
    online: "",
    "no rescaling": isRightSum
      ? " This time nothing had to be rescaled."
      : ` By luck: the sum is ${plainNumber(last.sum)} instead of ${plainNumber(plain.sum)}.`,
    "no maximum": " This time no exponential was too large or too small.",
  }[method];
  return `All blocks are read. The output ${found} is that of the plain softmax, ${agreement}.${luck}`;
}
