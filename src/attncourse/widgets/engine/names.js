// Names made by four rules: the twin of attncourse.tasks.names.
//
// Letters, their chances, endings and refusals stand in the file names.json.

import { filled, quoted } from "../shared/state.js";
import { NAMES } from "./names_data.js";

const LETTERS = [...NAMES.letters];
export const BOUNDARY = LETTERS.length; // the token before and after a name
const KINDS = Object.values(NAMES.vowels);
const VOWELS = KINDS.join("");
const A_VOWEL = new RegExp(`[${VOWELS}]`);
const ENDING = Object.fromEntries(
  Object.entries(NAMES.endings).flatMap(([end, firsts]) => [...firsts].map((one) => [one, end])),
);
const FIRST = Object.keys(ENDING).sort();

export const names = {
  name: "names",
  vocabulary: [...LETTERS, NAMES.boundary],
  readouts: { next: [...LETTERS, NAMES.boundary] },
  relations: ["vowel>vowel", "double>vowel", "ending>first"].map((name) => ({
    name,
    readout: "next",
  })),
  causal: true,
  length: 1 + NAMES.longest,
  draw,
  read,
  spelled,
  brokenRules,
};

/** Draw a name: {words, ids, answers, partners}, as attncourse.tasks.Sentence has them. */
function draw(rng) {
  const vowels = rng.choice(KINDS);
  const first = rng.choice(FIRST);
  const number = rng.choice(NAMES.numbers);
  const letters = [first, rng.choice(vowels)];
  for (let i = 1; i < number; i++) {
    const consonant = rng.choice(NAMES.inner);
    const isDoubled = isBeforeDouble(letters.at(-1));
    letters.push(consonant.repeat(isDoubled ? 2 : 1), rng.choice(vowels));
  }
  return read([...letters, ENDING[first]].join(""));
}

/** A text that somebody typed, as a sentence that begins with the boundary; throws where it is none. */
function read(text) {
  const letters = [...text.toLowerCase()];
  const refuse = (why, values) => {
    throw new RangeError(filled(NAMES.refused[why], values));
  };
  const letter = letters.find((one) => !LETTERS.includes(one));
  if (letter !== undefined) {
    refuse("letter", { letter: quoted(letter), text: quoted(letters.join("")) });
  }
  if (letters.length < 1 || letters.length > NAMES.longest) {
    refuse("length", { most: NAMES.longest, number: letters.length });
  }
  const ids = letters.map((letter) => LETTERS.indexOf(letter));
  return {
    words: [NAMES.boundary, ...letters],
    ids: [BOUNDARY, ...ids],
    answers: { next: [...ids, BOUNDARY] },
    partners: partnersOf(brokenRules(letters.join("")).length === 0 ? letters : []),
  };
}

/** The name that tokens spell, up to the boundary after it. */
function spelled(ids) {
  const own = ids[0] === BOUNDARY ? ids.slice(1) : ids;
  const end = own.indexOf(BOUNDARY);
  return own
    .slice(0, end < 0 ? own.length : end)
    .map((id) => LETTERS[id])
    .join("");
}

/** Which of "shape", "harmony", "doubling" and "ending" a name breaks; with "shape" comes no other. */
function brokenRules(name) {
  const consonants = name.split(A_VOWEL);
  const vowels = [...name].filter(isVowel);
  const [first, last] = [consonants[0], consonants.at(-1)];
  const inner = consonants.slice(1, -1);
  const isDouble = (one) => one.length === 2 && one[0] === one[1];
  const hasShape =
    NAMES.numbers.includes(vowels.length) &&
    [first, last].every((end) => end.length === 1) &&
    inner.every((one) => one.length === 1 || isDouble(one)) &&
    [...consonants.join("")].every((letter) => FIRST.includes(letter));
  if (!hasShape) return ["shape"];
  const kept = {
    harmony: KINDS.some((kind) => vowels.every((vowel) => kind.includes(vowel))),
    doubling: inner.every((one, i) => isDouble(one) === isBeforeDouble(vowels[i])),
    ending: last === ENDING[first],
  };
  return Object.keys(kept).filter((rule) => !kept[rule]);
}

/** The partners of a name's rows; letter i is word i + 1, which row i is to tell. */
function partnersOf(letters) {
  const vowels = [...letters.keys()].filter((i) => isVowel(letters[i]));
  const inner = vowels.slice(0, -1);
  return {
    "vowel>vowel": Object.fromEntries(inner.map((before, i) => [vowels[i + 1], before + 1])),
    "double>vowel": Object.fromEntries(inner.map((before) => [before + 2, before + 1])),
    "ending>first": letters.length > 0 ? { [letters.length - 1]: 1 } : {},
  };
}

function isVowel(letter) {
  return VOWELS.includes(letter);
}

function isBeforeDouble(letter) {
  return NAMES["before double"].includes(letter);
}
