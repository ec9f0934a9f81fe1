// What can be said of wrong numbers without knowing how they came about: as Python's
// checking/number_hints.py, which says what each of these is for.

const EXACT = 5e-4;
const TINY = 4;
const TIMES = [2, 3, 4, 5, 6, 8, 10, 12, 16, 32, 64];
const UNITS = [1, 2, 3].flatMap((power) => [1000 ** power, 1024 ** power]);

/** In which relation wrong numbers stand to the right ones; nothing where there is none. */
export function remark(ours, right, others) {
  const came = (change) => fits(ours, right.map(change));
  for (const { title, row } of others)
    if (title && row.some(tells) && fits(ours, row))
      return `This is what was wanted for \u201c${title}\u201d.`;
  if (fits(sorted(ours), sorted(right)) && !fits(ours, right))
    return "These are the right numbers, in the wrong order.";
  if (fits(ours.map(Math.abs), right.map(Math.abs)) && !fits(ours, right))
    return "The size is right. What about the sign?";
  if ([10, 100].some((parts) => isRounded(ours, right, parts)))
    return "Are these numbers rounded? Give more digits.";
  if (right.length > 1 && Math.min(...right) >= 0 && Math.abs(sum(right) - 1) < EXACT) {
    if (Math.abs(sum(ours) - 100) < 1) return "These sum to 100: did you mean percent?";
    if (Math.abs(sum(ours) - 1) > 100 * EXACT) return "These should sum to 1, and yours don't.";
  }
  const wrong = right.flatMap((number, i) => (fits([ours[i]], [number]) ? [] : [i]));
  if (wrong.length === 1 && right.length > 1) {
    const [i] = wrong;
    const why = remark([ours[i]], [right[i]], []);
    return `Only number ${i + 1} of these is wrong. ${why}`.trim();
  }
  const ratios = right.flatMap((number, i) => (number ? [ours[i] / number] : []));
  const isScaled =
    ratios.length > 1 && ratios[0] && came((number) => ratios[0] * number) && !fits(ours, right);
  const same = isScaled
    ? "All of these are off by the same factor: what did you multiply or divide by?"
    : "";
  const isTelling = (number) => tells(number) || (number === 0 && right.length > 1);
  if (![...ours, ...right].every(isTelling)) return same;
  if (right.length === 1 && fits(ours, [1 / right[0]]))
    return "This is one divided by what was wanted: which of the two numbers stands below?";
  if (right.every((number) => number > 0 && number < 1) && came((number) => 1 - number))
    return "This is 1 minus what was wanted: is it the share of the others?";
  const largest = Math.max(...right.map(Math.abs));
  const isShare = right.length === 1 && largest < 1;
  for (const times of [...(isShare ? [] : TIMES), 100, ...UNITS]) {
    const much = times.toLocaleString("en-US");
    if (came((number) => number * times)) {
      const isPercent = times === 100 && largest <= 1;
      const why = isPercent ? "did you mean percent?" : cause(times, "count too often");
      return `This is ${much} times too large: ${why}`;
    }
    if (came((number) => number / times))
      return `This is ${much} times too small: ${cause(times, "leave out")}`;
  }
  for (const power of [1, 2, 3])
    if ([1.024 ** power, 1 / 1.024 ** power].some((way) => came((number) => number * way)))
      return "You took 1,000 for 1,024, or the other way round: a KiB has 1,024 bytes.";
  if ([ours, right, ...others.map(({ row }) => row)].flat().every(Number.isInteger))
    // counts
    for (const way of [1, -1])
      if (came((number) => number + way))
        return `This is one too ${way > 0 ? "many" : "few"}: does your count begin and end where it should?`;
  return same;
}

function cause(times, slip) {
  return UNITS.includes(times) ? "is it in the right unit?" : `what did you ${slip}?`;
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
