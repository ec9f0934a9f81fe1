// What HeadLab trains: a language, a task with two needs at one place, or induction, and how each is told
// of.

import { concord } from "../engine/language.js";
import { makeDiagonals, makeInduction, makeLookup } from "../engine/sequences.js";
import { specOf } from "../engine/spec.js";
import { wholeText } from "../shared/numbers.js";
import { bestOffsets, CHANCE, evenWeights, needsOfOneWord } from "./findings.js";

/** The baseline of heads: a rule that knows no words, as `baselines` finds it. */
const BESIDE_DISTANCE = {
  baselineName: "best fixed distance",
  instead: "a fixed distance",
  legend: "what guessing gets, or looking at a fixed distance",
  baselines: bestOffsets,
};

const FAINT = "faint rows: words that are asked nothing";

/**
 * The tasks by their names; `make` and `options` build those that aren't the language. A task with a
 * `count` comes in sizes; one with `heads` is opened with as many in each layer, and the first of the
 * last layer is enlarged. One that is `foretold` asks only where a word has its `partner`; no loss is
 * drawn below `lowest`.
 */
export const TASKS = {
  concord: {
    tab: "Concord",
    about:
      "Press Train: a small model learns to answer questions about sentences, here in your " +
      "browser. Then move the slider, and watch what more heads learn.",
    heading: "A sentence, and what the model answers",
    asked:
      "Nouns of this invented language, Concord, have a class, ba, ki, lu or mo, and other words agree with " +
      "them: a verb answers bana if its subject is of class ba, -\u2060ki if its object is of class ki. The " +
      "ending tells who answers: -\u2060na a verb, -\u2060le a determiner or adjective, -\u2060ye a pronoun. " +
      "Choose other words, or type a sentence.", // its endings aren't torn from their hyphens
    another: "Another sentence",
    faint: FAINT,
    ...BESIDE_DISTANCE,
  },
  lookup: {
    tab: "Two needs: keys",
    about: "The last word asks for the values of two keys at once. Train one head, then two.",
    heading: "A question, and what the model answers",
    asked:
      "Each slot holds a key and its value: in c3 key c has the value 3. A question such as fc? asks " +
      "first for the value of f, second for that of c. Choose other values, or another question.",
    another: "Another question",
    ...BESIDE_DISTANCE,
    count: "Values",
    make: makeLookup,
    options: (symbols) => ({ values: symbols }),
  },
  diagonals: {
    tab: "Two needs: places",
    about:
      "Each symbol must name the one before it and the one three before. Train one head, then two.",
    heading: "Symbols, and what the model answers",
    asked:
      "From the fourth symbol on, each is asked for the one before it (1 back) and for the one three " +
      "places before (3 back). It may look at itself and to the left. Choose other symbols.",
    another: "Other symbols",
    baselineName: "looking at all equally",
    instead: "looking at all equally",
    legend: "what guessing gets, or looking at all equally",
    baselines: evenWeights,
    faint: FAINT,
    count: "Symbols",
    make: makeDiagonals,
    options: (symbols) => ({ symbols }),
  },
  induction: {
    tab: "Induction",
    about:
      "Two layers learn to predict the next symbol. Watch the loss: it soon stands still, and later it " +
      "falls again. Then mute heads of layer 2, one after the other.",
    heading: "A sequence, and which symbol comes next",
    asked:
      "In each sequence chunks of two or three symbols return. Where a chunk has come before, the model " +
      "can know what comes next, and we ask it. Head 2.1 is the first head of layer 2. Beside " +
      "an induction head stands its prefix matching: its mean weight one place after the earlier copy.",
    another: "Another sequence",
    faint: "faint rows: nobody could know what comes next",
    ...BESIDE_DISTANCE,
    perLayer: " a layer",
    foretold: true,
    partner: "one place after the earlier copy",
    lowest: 1,
    heads: 4,
    make: makeInduction,
    options: () => ({ symbols: 12, length: 24, chunks: [2, 2, 3] }),
  },
};

/** The relations of all tasks, by name. */
export const RELATIONS = Object.values(TASKS).flatMap(({ make }) =>
  (make?.() ?? concord).relations.map(({ name }) => name),
);

/**
 * What is trained but for the number of heads and the seed: the task as in TASKS, and
 *
 *   key             the same for the same settings
 *   task, options   of engine/tasks.js
 *   spec, recipe    of a model, and of its training
 *   given           a reader's own weights, by torch's names, or null
 *   rows            what is asked: {name, chance, share}; `share(evaluation)` is right
 *   listed, drawn   the names of rows in the list of models, and of those with dots
 *   pairs, otherPairs   relations that one word needs, and some of different words
 *   ours            in how many of our models they share a head: {heads: {pair: counts}}
 *   command, digests   its name in `python -m attncourse.training`, and digits of the course's models
 *   alternatives, changed   what may stand at a place of a sentence, and the sentence with it
 *
 * `state` is that of widget.js.
 */
export function settingOf(state) {
  const { task: name, symbols, steps, mlp, recipes, inductionDigests } = state;
  const kind = TASKS[name];
  if (name === "concord") {
    const { spec, recipe, given, ours, digests } = state;
    const own = given === null ? { ours, digests, command: recipe.name } : {}; // the course's model
    return { ...kind, ...ofConcord, key: name, name, task: concord, spec, recipe, given, ...own };
  }
  const options = kind.options(symbols);
  const task = kind.make(options);
  if (name === "induction") {
    return { ...kind, ...ofInduction(task, recipes[name]), options, digests: inductionDigests };
  }
  const { d_model } = recipes[name].model;
  const names = task.relations.map((relation) => relation.name);
  const vocabulary = new Map(task.vocabulary.map((word, id) => [word, id]));
  return {
    ...kind,
    key: [name, symbols, steps, mlp].join(),
    name,
    task,
    options,
    inWords: `${symbols} ${kind.count.toLowerCase()}, ${wholeText(steps)} steps${mlp ? ", MLP" : ""}`,
    chosen: { symbols, steps, mlp },
    spec: specOf(task, { d_model, num_heads: 1, d_ff: mlp ? 4 * d_model : 0 }),
    recipe: { ...recipes[name], steps },
    rows: [...rowsOf(task, 1 / symbols), both(1 / symbols ** 2)],
    listed: [...names, "both"],
    drawn: [...names, "both"],
    pairs: [names],
    otherPairs: [],
    alternatives: task.alternatives,
    changed: ({ ids }, place, word) =>
      task.sentenceOf(Object.assign([...ids], { [place]: vocabulary.get(word) })),
  };
}

/** What a setting asks, by these names. */
export function rowsNamed({ rows }, names) {
  return names.map((name) => rows.find((row) => row.name === name));
}

function rowsOf({ relations }, chance) {
  return relations.map(({ name }) => ({
    name,
    chance,
    share: (evaluation) => evaluation.relations[name],
  }));
}

function ofInduction(task, recipe) {
  return {
    key: task.name,
    name: task.name,
    task,
    spec: specOf(task, recipe.model),
    recipe,
    command: recipe.name,
    rows: rowsOf(task, 1 / task.readouts.next.length),
    listed: [task.name],
    drawn: [task.name],
    pairs: [],
    otherPairs: [],
    alternatives: () => [],
  };
}

function both(chance) {
  return { name: "both", chance, share: ({ joint }) => joint };
}

const ofConcord = {
  rows: rowsOf(concord, CHANCE),
  listed: ["verb>subject", "verb>object", "their>thing"],
  drawn: ["verb>subject", "verb>object", "their>owner", "their>thing"],
  pairs: needsOfOneWord(concord.relations),
  otherPairs: [
    ["verb>object", "their>thing"],
    ["determiner>noun", "adjective>noun"],
    ["verb>subject", "their>owner"],
    ["determiner>noun", "verb>subject"],
  ],
  alternatives: wordsFor,
  changed: ({ words }, place, word) => concord.read(replaced(words, place, word)),
};

/** A text in which another word stands at a place. */
function replaced(words, place, word) {
  return Object.assign([...words], { [place]: word }).join(" ");
}

/** Concord's words that may stand in place of one, itself among them. */
function wordsFor({ words }, place) {
  const next = concord.nextWords(words.slice(0, place).join(" "));
  return next.filter((word) => {
    if (word === words[place]) return true;
    try {
      return concord.read(replaced(words, place, word)).words.length === words.length;
    } catch {
      return false;
    }
  });
}
