// The place that an answer has in the table of verdicts: in the order of Python's itertools.

/** The place of a mix in which part i is `choices[i]` of `sizes[i]`. */
export function placeOfMix(choices, sizes) {
  return choices.reduce((place, choice, i) => place * sizes[i] + choice, 0);
}

/** The place of `picked` indices, ascending, among all such picks of n things. */
export function placeOfPick(picked, n) {
  let place = 0;
  picked.forEach((index, i) => {
    const left = picked.length - 1 - i;
    for (let before = (picked[i - 1] ?? -1) + 1; before < index; before++)
      place += waysToPick(left, n - 1 - before);
  });
  return place;
}

/** The place of an order among all orders. */
export function placeOfOrder(order) {
  return order.reduce((place, step, i) => {
    const later = order.slice(i + 1);
    return place * (later.length + 1) + later.filter((other) => other < step).length;
  }, 0);
}

/** In how many ways `count` of n things can be picked. */
export function waysToPick(count, n) {
  if (count > n) return 0;
  let ways = 1;
  for (let i = 1; i <= count; i++) ways = (ways * (n - count + i)) / i;
  return ways;
}

export function waysToOrder(n) {
  return n < 2 ? 1 : n * waysToOrder(n - 1);
}

/** What a group of fields is: a known row, near to the first of them, or something else. */
export function kindOfNumbers(numbers, known, { tolerance, near }) {
  const isWithin = (row, distance) =>
    row.every((number, i) => Math.abs(numbers[i] - number) <= distance);
  const found = known.findIndex((row) => isWithin(row, tolerance));
  if (found !== -1) return found;
  if (near <= tolerance) return known.length;
  return known.length + (isWithin(known[0], near) ? 0 : 1);
}
