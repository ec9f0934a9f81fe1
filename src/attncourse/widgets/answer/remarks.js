// What can be said of wrong numbers without knowing how they came about: as Python's
// checking/number_hints.py, which says what each of these is for.

import { filled } from "../shared/state.js";
import { SAID } from "./remarks_said.js";

const EXACT = 5e-4;
const TINY = 4;
const TIMES = [2, 3, 4, 5, 6, 8, 10, 12, 16, 32, 64];
const UNITS = [1, 2, 3].flatMap((power) => [1000 ** power, 1024 ** power]);

/** In which relation wrong numbers stand to the right ones; nothing where there is none. */
export function remark(ours, right, others) {
  const came = (change) => fits(ours, right.map(change));
  for (const { title, row } of others)
    if (title && row.some(tells) && fits(ours, row)) return filled(SAID.row, { title });
  if (fits(sorted(ours), sorted(right)) && !fits(ours, right)) return SAID.order;
  if (fits(ours.map(Math.abs), right.map(Math.abs)) && !fits(ours, right)) return SAID.sign;
  if ([10, 100].some((parts) => isRounded(ours, right, parts))) return SAID.rounded;
  if (right.length > 1 && Math.min(...right) >= 0 && Math.abs(sum(right) - 1) < EXACT) {
    if (Math.abs(sum(ours) - 100) < 1) return SAID.hundred;
    if (Math.abs(sum(ours) - 1) > 100 * EXACT) return SAID.shares;
  }
  const wrong = right.flatMap((number, i) => (fits([ours[i]], [number]) ? [] : [i]));
  if (wrong.length === 1 && right.length > 1) {
    const [i] = wrong;
    const why = remark([ours[i]], [right[i]], []);
    return `${filled(SAID.single, { number: i + 1 })} ${why}`.trim();
  }
  const ratios = right.flatMap((number, i) => (number ? [ours[i] / number] : []));
  const isScaled =
    ratios.length > 1 && ratios[0] && came((number) => ratios[0] * number) && !fits(ours, right);
  const same = isScaled ? SAID.factor : "";
  const isTelling = (number) => tells(number) || (number === 0 && right.length > 1);
  if (![...ours, ...right].every(isTelling)) return same;
  if (right.length === 1 && fits(ours, [1 / right[0]])) return SAID.divided;
  if (right.every((number) => number > 0 && number < 1) && came((number) => 1 - number))
    return SAID.minus;
  const largest = Math.max(...right.map(Math.abs));
  const isShare = right.length === 1 && largest < 1;
  for (const times of [...(isShare ? [] : TIMES), 100, ...UNITS]) {
    const tell = (words, cause) => filled(words, { times: times.toLocaleString("en-US"), cause });
    const slip = (name) => SAID[UNITS.includes(times) ? "unit" : name];
    const isPercent = times === 100 && largest <= 1;
    if (came((number) => number * times))
      return tell(SAID.large, isPercent ? SAID.percent : slip("often"));
    if (came((number) => number / times)) return tell(SAID.small, slip("out"));
  }
  for (const power of [1, 2, 3])
    if ([1.024 ** power, 1 / 1.024 ** power].some((way) => came((number) => number * way)))
      return SAID.kib;
  if ([ours, right, ...others.map(({ row }) => row)].flat().every(Number.isInteger))
    // counts: where numbers are not whole, a difference of 1 is chance
    for (const step of [1, -1])
      if (came((number) => number + step))
        return filled(SAID.one, { way: step > 0 ? "large" : "small" });
  return same;
}

/** Whether a relation of this number is hardly one by chance. */
const tells = (number) => !Number.isInteger(number) || Math.abs(number) >= TINY;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

const isRounded = (ours, right, parts) =>
  right.some((number, i) => Math.round(ours[i] * parts) && !Number.isInteger(number)) &&
  right.every(
    (number, i) =>
      Math.abs(ours[i] * parts - Math.round(ours[i] * parts)) <= 1e-6 &&
      Math.abs(ours[i] - number) * parts < 0.5001,
  );

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

function fits(ours, row) {
  const isOne = (a, b) =>
    b === 0 || (Number.isInteger(a) && Number.isInteger(b))
      ? a === b
      : Math.abs(a - b) <= EXACT * Math.max(Math.abs(a), Math.abs(b));
  return ours.length === row.length && row.every((number, i) => isOne(ours[i], number));
}
