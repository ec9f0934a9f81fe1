// Tasks with two needs, and induction: the twins of attncourse.tasks.lookup, diagonals, induction.
//
// Those with two needs also make a sentence of given ids (`sentenceOf`), tell which words may stand at
// a place (`alternatives`), and draw other contents for a sentence (`withOtherValues`): the places
// to look for stay the same.

const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"];
const START = "<start>";

/** Slots with a key and a value each, and a question for the values of two keys. */
export function makeLookup({ slots = 8, values = 8 } = {}) {
  requireFrom("slots", slots, 2, LETTERS.length);
  requireFrom("values", values, 1);
  const keys = LETTERS.slice(0, slots);
  const answers = numbersTo(values).map(String);
  const contents = keys.flatMap((key) => answers.map((value) => key + value));
  const questions = keys.flatMap((p) => keys.flatMap((q) => (p === q ? [] : [`${p}${q}?`])));
  const vocabulary = [...contents, ...questions];

  function draw(rng) {
    const order = rng.shuffled(numbersTo(slots));
    const held = order.map((key) => key * values + rng.randbelow(values));
    const asked = rng.randbelow(slots) * (slots - 1) + rng.randbelow(slots - 1);
    return sentenceOf([...held, slots * values + asked]);
  }

  function sentenceOf(ids) {
    const held = ids.slice(0, slots);
    const asked = ids[slots] - slots * values;
    const first = Math.floor(asked / (slots - 1));
    const other = asked % (slots - 1); // among the keys without the first
    const order = held.map((id) => Math.floor(id / values));
    const places = [first, other + (other >= first ? 1 : 0)].map((key) => order.indexOf(key));
    const [firstValue, secondValue] = places.map((place) => held[place] % values);
    const none = held.map(() => null);
    return {
      words: ids.map((id) => vocabulary[id]),
      ids,
      answers: { first: [...none, firstValue], second: [...none, secondValue] },
      partners: {
        "question>first": { [slots]: places[0] },
        "question>second": { [slots]: places[1] },
      },
    };
  }

  function alternatives({ words }, place) {
    if (place === slots) return questions;
    return answers.map((value) => words[place][0] + value);
  }

  function withOtherValues({ ids }, rng) {
    const other = (id) => id - (id % values) + rng.randbelow(values);
    return sentenceOf([...ids.slice(0, slots).map(other), ids[slots]]);
  }

  return {
    name: `lookup-${slots}-${values}`,
    vocabulary,
    readouts: { first: answers, second: answers },
    relations: [
      { name: "question>first", readout: "first" },
      { name: "question>second", readout: "second" },
    ],
    causal: false,
    length: slots + 1,
    draw,
    sentenceOf,
    alternatives,
    withOtherValues,
  };
}

/** Random symbols; each row is to name those some places back. */
export function makeDiagonals({ offsets = [1, 3], symbols = 16, length = 16 } = {}) {
  if (offsets.length === 0) throw new RangeError("offsets must hold at least one, got none");
  offsets.forEach((offset, i) => {
    requireFrom("offsets", offset, i > 0 ? offsets[i - 1] + 1 : 1);
  });
  requireFrom("symbols", symbols, 1, LETTERS.length);
  requireFrom("length", length, offsets.at(-1) + 1);
  const vocabulary = LETTERS.slice(0, symbols);
  const named = offsets.map((offset) => [`${offset} back`, offset]);

  function sentenceOf(ids) {
    const rows = numbersTo(length).filter((i) => i >= offsets.at(-1)); // those that can answer all
    const before = numbersTo(offsets.at(-1)).map(() => null);
    const ofEach = (make) =>
      Object.fromEntries(named.map(([name, offset]) => [name, make(offset)]));
    return {
      words: ids.map((id) => vocabulary[id]),
      ids,
      answers: ofEach((offset) => [...before, ...rows.map((i) => ids[i - offset])]),
      partners: ofEach((offset) => Object.fromEntries(rows.map((i) => [i, i - offset]))),
    };
  }
  const draw = (rng) => sentenceOf(numbersTo(length).map(() => rng.randbelow(symbols)));

  return {
    name: `diagonals-${offsets.join("-")}`,
    vocabulary,
    readouts: Object.fromEntries(named.map(([name]) => [name, vocabulary])),
    relations: named.map(([name]) => ({ name, readout: name })),
    causal: true,
    length,
    draw,
    sentenceOf,
    alternatives: () => vocabulary,
    withOtherValues: (_, rng) => draw(rng),
  };
}

/** Sequences in which chunks come again; each row tells the next symbol. */
export function makeInduction({
  symbols = 48,
  length = 40,
  chunks: sizes = [2, 2, 3, 4],
  filler = 0.2,
} = {}) {
  if (sizes.length === 0) throw new RangeError("chunks must hold at least one, got none");
  for (const size of sizes) requireFrom("chunks", size, 2);
  const inChunks = sizes.reduce((sum, size) => sum + size, 0);
  requireFrom("symbols", symbols, inChunks + 1, LETTERS.length);
  requireFrom("length", length, 1);
  if (!(filler >= 0 && filler < 1)) {
    throw new RangeError(`filler must be at least 0 and below 1, got ${filler}`);
  }
  const letters = LETTERS.slice(0, symbols);
  const vocabulary = [...letters, START];

  function draw(rng) {
    const order = rng.shuffled(numbersTo(symbols));
    const chunks = sizes.map((size) => order.splice(0, size));
    const ids = [symbols];
    const partners = {};
    const seen = new Map(); // a chunk -> where it last began
    while (ids.length < length) {
      if (rng.bernoulli(filler)) {
        ids.push(rng.choice(order));
        continue;
      }
      const chunk = rng.choice(chunks);
      const start = ids.length;
      if (seen.has(chunk)) {
        for (let step = 0; step < chunk.length - 1 && start + step < length - 1; step++) {
          partners[start + step] = seen.get(chunk) + step + 1;
        }
      }
      seen.set(chunk, start);
      ids.push(...chunk);
    }
    ids.length = length;
    return {
      words: ids.map((id) => vocabulary[id]),
      ids,
      answers: { next: [...ids.slice(1), null] },
      partners: { induction: partners },
    };
  }

  return {
    name: "induction",
    vocabulary,
    readouts: { next: letters },
    relations: [{ name: "induction", readout: "next" }],
    causal: true,
    length,
    draw,
  };
}

function numbersTo(count) {
  return Array.from({ length: count }, (_, i) => i);
}

/** Throw unless a value is a whole number of at least `least`, and at most `most`. */
function requireFrom(name, value, least, most = Infinity) {
  if (!Number.isInteger(value) || value < least || value > most) {
    const limits = most < Infinity ? `from ${least} to ${most}` : `of at least ${least}`;
    throw new RangeError(`${name} must be a whole number ${limits}, got ${value}`);
  }
}
