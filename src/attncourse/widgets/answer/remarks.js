// What can be said of wrong numbers without knowing how they came about: as Python's
// checking/remarks.py, which says what each of these is for.

const EXACT = 5e-4;
const TINY = 4;
const TIMES = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32, 64];
const UNITS = [1, 2, 3].flatMap((power) => [1000 ** power, 1024 ** power]);

/** In which relation wrong numbers stand to the right ones; nothing where there is none. */
export function remark(ours, right, others) {
  const came = (change) => fits(ours, right.map(change));
  for (const { title, row } of others)
    if (title && row.some(tells) && fits(ours, row))
      return `This is what was wanted for \u201c${title}\u201d.`;
  if (fits(sorted(ours), sorted(right)) && !fits(ours, right))
    return "These are the right numbers, in another order.";
  if (came((number) => -number)) return "The size is right. What about the sign?";
  const isTelling = (number) => tells(number) || (number === 0 && right.length > 1);
  if (![...ours, ...right].every(isTelling)) return "";
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
      const why = isPercent ? "did you mean percent?" : cause(times, "count so often");
      return `This is ${much} times too large: ${why}`;
    }
    if (came((number) => number / times))
      return `This is ${much} times too small: ${cause(times, "leave out")}`;
  }
  for (const power of [1, 2, 3])
    if ([1.024 ** power, 1 / 1.024 ** power].some((way) => came((number) => number * way)))
      return "You took 1,000 for 1,024, or the other way round: a KiB has 1,024 bytes.";
  if ([...ours, ...right].every(Number.isInteger))
    for (const way of [1, -1])
      if (came((number) => number + way))
        return `This is one too ${way > 0 ? "much" : "little"}: does your count begin and end where it should?`;
  return "";
}

function cause(times, slip) {
  return UNITS.includes(times) ? "is it in the right unit?" : `what did you ${slip}?`;
}

/** Whether a relation of this number is hardly one by chance. */
const tells = (number) => !Number.isInteger(number) || Math.abs(number) >= TINY;

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

function fits(ours, row) {
  const isOne = (a, b) =>
    b === 0 || (Number.isInteger(a) && Number.isInteger(b))
      ? a === b
      : Math.abs(a - b) <= EXACT * Math.max(Math.abs(a), Math.abs(b));
  return ours.length === row.length && row.every((number, i) => isOne(ours[i], number));
}
