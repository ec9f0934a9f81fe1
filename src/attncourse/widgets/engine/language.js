// Concord, a made language in which words answer to others: the twin of attncourse.tasks.concord.
//
// Its words, numbers, answers and refusals are the file concord.json. One walk through the grammar
// serves both ways: at each turn it asks whether a word of some category comes next. Who draws a
// sentence throws a die, in the same order as Python; who reads one looks at the next word.

import { filled, quoted } from "../shared/state.js";
import { CONCORD } from "./concord.js";

const { words: WORDS, kinds: KINDS, persons: PERSONS, chances: CHANCES, shapes: SHAPES } = CONCORD;
const { refused: REFUSED } = CONCORD;
const [STOP] = WORDS.end;
const CATEGORY = new Map(
  Object.entries(WORDS).flatMap(([category, words]) => words.map((word) => [word, category])),
);
const VOCABULARY = [...CATEGORY.keys()];
const PLACE = new Map(VOCABULARY.map((word, place) => [word, place]));
const SPELLING = new Map(VOCABULARY.map((word) => [word.toLowerCase(), word]));
const CLASS = new Map(
  KINDS.flatMap((kind) => WORDS[kind].map((noun, place) => [noun, place % CONCORD.classes])),
);
const READOUTS = Object.fromEntries(
  Object.entries(CONCORD.answers).map(([readout, sets]) => [readout, Object.values(sets).flat()]),
);
const [NO_ADVERB] = CONCORD.answers.B.adverb;
const CLASS_NAMES = CONCORD.answers.B.noun; // "-ba"

export const concord = {
  name: "concord",
  vocabulary: VOCABULARY,
  readouts: READOUTS,
  relations: Object.entries(CONCORD.relations).map(([name, { readout }]) => ({ name, readout })),
  causal: false,
  length: CONCORD.length,
  classOf,
  draw,
  read,
  nextWords,
};

/** Draw a sentence: {words, ids, answers, partners}, as attncourse.tasks.Sentence has them. */
function draw(rng) {
  const walk = makeDrawing(rng);
  const plan = walkThrough(walk);
  return sentenceOf(walk.words(plan), plan);
}

/** A text that somebody typed, as a sentence; throws where it is none, and says what may stand. */
function read(text) {
  const words = wordsOf(text);
  if (words.length > CONCORD.length) {
    const [most, number] = [CONCORD.length, words.length];
    throw new RangeError(filled(REFUSED.long, { most, number }));
  }
  if (words.at(-1) !== STOP && candidatesAfter(words).includes(STOP)) words.push(STOP);
  const { plan, stuck } = planOf(words);
  if (stuck) throw new RangeError(objection(words, stuck));
  return sentenceOf(words, plan);
}

/** What a noun's class is called, "-ba"; null of another word. */
function classOf(word) {
  return CLASS.has(word) ? CLASS_NAMES[CLASS.get(word)] : null;
}

/** The words with which a sentence that begins so may go on; none at its end. */
function nextWords(text) {
  return candidatesAfter(wordsOf(text, { mayBeEmpty: true }));
}

/** Go through a sentence: subject, clause, verb, object, and what the shape adds. */
function walkThrough(walk) {
  const partners = Object.fromEntries(Object.keys(CONCORD.relations).map((name) => [name, {}]));
  const plan = { partners, adjectives: [], pronoun: null, predicate: null };
  plan.subject = nounPhrase(walk, plan, walk.take("determiner"));
  if (walk.comes(CHANCES.clause, "that")) {
    walk.take("that");
    let noun = null;
    if (walk.comes(CHANCES["clause with a noun"], "determiner")) {
      const determiner = walk.take("determiner");
      noun = walk.take("noun");
      partners["determiner>noun"][determiner] = noun;
    } else {
      walk.take("speaker");
    }
    const verb = walk.take("relative verb");
    if (noun !== null) partners["verb>subject"][verb] = noun;
    partners["verb>object"][verb] = plan.subject;
  }
  const giving = walk.comes(SHAPES.giving, "giving verb");
  const verb = walk.take(giving ? "giving verb" : "verb");
  partners["verb>subject"][verb] = plan.subject;
  plan.object = nounPhrase(walk, plan, walk.take("determiner"));
  if (giving) {
    if (walk.comes(CHANCES.time, "time")) walk.take("time");
    const their = walk.take("their");
    const thing = nounPhrase(walk, plan, null);
    partners["their>owner"][their] = plan.object;
    partners["their>thing"][their] = thing;
    partners["verb>object"][verb] = thing;
  } else {
    partners["verb>object"][verb] = plan.object;
    if (walk.comes(SHAPES.because / (SHAPES.because + SHAPES.plain), "conjunction")) {
      walk.take("conjunction");
      plan.pronoun = walk.take("pronoun");
      walk.take("copula");
      if (walk.comes(CHANCES["adverb of predicate"], "adverb")) walk.take("adverb");
      plan.predicate = walk.take("predicate");
    }
  }
  walk.take("end");
  return plan;
}

/** Go through adverb, adjectives and noun; returns the noun's place. */
function nounPhrase(walk, plan, determiner) {
  let adverb = null;
  const adjectives = [];
  if (walk.comes(CHANCES.adjective, "adverb", "adjective")) {
    if (walk.comes(CHANCES.adverb, "adverb")) adverb = walk.take("adverb");
    adjectives.push(walk.take("adjective"));
    if (walk.comes(CHANCES["second adjective"], "adjective")) {
      adjectives.push(walk.take("adjective"));
    }
  }
  const noun = walk.take("noun");
  if (determiner !== null) plan.partners["determiner>noun"][determiner] = noun;
  for (const adjective of adjectives) {
    plan.partners["adjective>noun"][adjective] = noun;
    if (adverb !== null) plan.partners["adjective>adverb"][adjective] = adverb;
  }
  plan.adjectives.push(...adjectives);
  return noun;
}

/** A walk that throws dice; the words are drawn afterwards. */
function makeDrawing(rng) {
  const categories = [];
  return {
    comes: (probability) => rng.bernoulli(probability),
    take: (category) => categories.push(category) - 1,
    words({ subject, object, pronoun }) {
      const nouns = categories.flatMap((category, place) => (category === "noun" ? [place] : []));
      const kinds = pronoun === null ? nouns.map(() => rng.choice(PERSONS)) : rng.shuffled(KINDS);
      const kindOf = new Map(nouns.map((place, i) => [place, kinds[i]]));
      const words = categories.map((category, place) =>
        category === "pronoun" ? "" : rng.choice(WORDS[kindOf.get(place) ?? category]),
      );
      if (pronoun !== null) {
        words[pronoun] = pronounOf(kindOf.get(rng.choice([subject, object])));
      }
      return words;
    },
  };
}

/**
 * A walk along given words. Where none of what may stand comes, it throws an error with
 * `place` and `candidates`.
 *
 * Nouns are persons, but where a pronoun follows: there no two are of one kind, and the pronoun is
 * that of the subject or of the object.
 */
function makeReading(words) {
  const kinds = []; // of the nouns so far
  const taken = []; // the categories so far
  let asked = []; // all that might have stood at this place

  function fitting(category) {
    const persons = kinds.every((kind) => PERSONS.includes(kind));
    const distinct = new Set(kinds).size === kinds.length;
    const fitsNoun = (kind) =>
      (persons && PERSONS.includes(kind)) ||
      (distinct && !kinds.includes(kind) && !taken.includes("giving verb"));
    if (category === "noun") return KINDS.filter(fitsNoun).flatMap((kind) => WORDS[kind]);
    if (category === "pronoun") {
      const meant = [kinds[0], kinds.at(-1)]; // subject and object
      return KINDS.filter((kind) => meant.includes(kind)).map(pronounOf);
    }
    const fits = {
      "giving verb": persons,
      conjunction: distinct,
      end: persons || taken.includes("pronoun"),
    };
    return (fits[category] ?? true) ? WORDS[category] : [];
  }

  return {
    comes(_probability, ...categories) {
      const candidates = categories.flatMap(fitting);
      asked.push(...candidates);
      return candidates.includes(words[taken.length]);
    },
    take(category) {
      const word = words[taken.length];
      const candidates = fitting(category);
      if (!candidates.includes(word)) {
        const mayStand = [...new Set([...asked, ...candidates])];
        throw Object.assign(new Error("stuck"), { place: taken.length, candidates: mayStand });
      }
      if (category === "noun") kinds.push(CATEGORY.get(word));
      asked = [];
      return taken.push(category) - 1;
    },
    place: () => taken.length,
  };
}

function pronounOf(kind) {
  return WORDS.pronoun[KINDS.indexOf(kind)];
}

/** Who is who in a whole sentence: {plan}, or {stuck} where words are none. */
function planOf(words) {
  const walk = makeReading(words);
  try {
    const plan = walkThrough(walk);
    const place = walk.place();
    return place < words.length ? { stuck: { place, candidates: [] } } : { plan };
  } catch (stuck) {
    if (stuck.candidates === undefined) throw stuck;
    return { stuck };
  }
}

/** The words that may follow some words; throws where these are no beginning of a sentence. */
function candidatesAfter(words) {
  const { stuck } = planOf(words);
  if (stuck && stuck.place < words.length) throw new RangeError(objection(words, stuck));
  return stuck ? stuck.candidates : [];
}

/** A text's words as the vocabulary has them; unknown ones are refused. */
function wordsOf(text, { mayBeEmpty = false } = {}) {
  const words = [];
  for (const word of text.replaceAll(STOP, ` ${STOP} `).split(/\s+/u).filter(Boolean)) {
    const known = SPELLING.get(word.toLowerCase());
    if (known === undefined) {
      const told = { word: came(word, words.length), offer: offer(candidatesAfter(words)) };
      throw new RangeError(filled(REFUSED.unknown, told));
    }
    words.push(known);
  }
  if (words.length === 0 && !mayBeEmpty) {
    throw new RangeError(REFUSED.empty);
  }
  return words;
}

/** Where words are no sentence, and what may stand there. */
function objection(words, { place, candidates }) {
  return filled(REFUSED.astray, {
    came: place < words.length ? came(words[place], place) : REFUSED.end,
    after: place > 0 ? filled(REFUSED.after, { words: words.slice(0, place).join(" ") }) : "",
    offer: offer(candidates),
  });
}

const came = (word, place) => filled(REFUSED.word, { word: quoted(word), place: place + 1 });

/** The words that may stand somewhere, category by category. */
function offer(candidates) {
  if (candidates.length === 0) return REFUSED.over;
  const kinds = new Map();
  for (const word of candidates) {
    const kind = CATEGORY.get(word);
    kinds.set(kind, [...(kinds.get(kind) ?? []), word]);
  }
  const offered = [...kinds.values()].map((words) => words.join(", "));
  return filled(REFUSED.offer, { words: offered.join("; ") });
}

/** Words with their partners, and the answers that hang on these. */
function sentenceOf(words, { partners, adjectives, subject, object, pronoun, predicate }) {
  if (pronoun !== null) {
    const kind = KINDS[WORDS.pronoun.indexOf(words[pronoun])];
    const meant = CATEGORY.get(words[subject]) === kind ? subject : object;
    partners["pronoun>noun"][pronoun] = meant;
    partners["predicate>noun"][predicate] = meant;
  }
  const answers = Object.fromEntries(
    Object.keys(READOUTS).map((readout) => [readout, words.map(() => null)]),
  );
  for (const place of adjectives) answers.B[place] = READOUTS.B.indexOf(NO_ADVERB);
  for (const [name, { readout, answers: kind }] of Object.entries(CONCORD.relations)) {
    for (const [place, partner] of Object.entries(partners[name])) {
      const word = words[partner];
      const answer = CLASS.has(word) ? CONCORD.answers[readout][kind][CLASS.get(word)] : word;
      answers[readout][place] = READOUTS[readout].indexOf(answer);
    }
  }
  return { words, ids: words.map((word) => PLACE.get(word)), answers, partners };
}
