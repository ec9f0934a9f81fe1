// Random numbers that Python and a browser share, bit for bit: the twin of attnlib/rng.py.

const WORD = 2 ** 32; // how many values a number of 32 bits has
const MIXING = 12; // rounds until each bit of the seed has reached all others

/**
 * A stream of random numbers from a seed: sfc32, Chris Doty-Humphrey's generator from PractRand.
 * From one seed, different streams are drawn for different things. Both are whole numbers from 0 to
 * 2^32 - 1.
 */
export function sfc32(seed, stream = 0) {
  for (const [name, value] of Object.entries({ seed, stream })) {
    if (!Number.isInteger(value) || value < 0 || value >= WORD) {
      throw new RangeError(`${name} must be a whole number from 0 to 2^32 - 1, got ${value}`);
    }
  }
  let [a, b, c, counter] = [0, seed | 0, stream | 0, 1];

  /** A whole number from 0 to 2^32 - 1. */
  function uint32() {
    const drawn = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + drawn) | 0;
    return drawn >>> 0;
  }

  /** A number from 0 up to, not including, 1. */
  function uniform() {
    return uint32() / WORD;
  }

  /** A nearly normal number: twelve uniform ones, less 6. The sum is exact. */
  function normal() {
    let sum = 0;
    for (let i = 0; i < 12; i++) sum += uint32();
    return sum / WORD - 6;
  }

  /** A whole number from 0 to number - 1, where number is at most 2^20. */
  function randbelow(number) {
    return Math.floor((uint32() * number) / WORD);
  }

  function bernoulli(probability) {
    return uniform() < probability;
  }

  function choice(items) {
    return items[randbelow(items.length)];
  }

  /** Things shuffled, each order equally likely (Fisher and Yates). */
  function shuffled(items) {
    const order = [...items];
    for (let last = order.length - 1; last > 0; last--) {
      const other = randbelow(last + 1);
      [order[last], order[other]] = [order[other], order[last]];
    }
    return order;
  }

  for (let i = 0; i < MIXING; i++) uint32();
  return { uint32, uniform, normal, randbelow, bernoulli, choice, shuffled };
}
