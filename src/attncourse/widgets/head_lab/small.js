// HeadLab's smallest form: few numbers of heads, two questions of one verb, and where each head looks.

import { concord } from "../engine/language.js";
import { TransformerModel } from "../engine/model.js";
import { sfc32 } from "../engine/rng.js";
import { rngOfWeights } from "../engine/streams.js";
import { startTraining } from "../engine/trainer.js";
import { createTraining } from "../lab/controls.js";
import { digestNotes } from "../lab/digest.js";
import { createAsker, sharedRuns, specWith, watchInSight } from "../lab/runs.js";
import { headsInWords } from "../lab/words.js";
import { createArcs } from "../shared/arcs.js";
import { createBar } from "../shared/bar.js";
import { useHeadColor } from "../shared/color.js";
import { element, write } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import {
  createButton,
  createControls,
  createHeading,
  createLegend,
  createLive,
  createNote,
  createSwatch,
  createWidget,
} from "../shared/parts.js";
import { redrawOn, setterOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { CHANCE, hasLearned } from "./findings.js";
import { answeredBy, createSlots, questionsOf } from "./sentence.js";
import { sayVerb } from "./words.js";

const OFFERED = 200; // sentences; one as long as that before is taken, so that nothing moves

const NEEDS = ["verb>subject", "verb>object"];
const TRAITS = ["num_heads", "seed", "trained", "sentence"];
const FOUND = 0.5; // a weight: a head that looks at a word more than at all others together
const WHY = "book/L04_Multi_Head_Attention.html#two-questions"; // on the site

/** The last verb of a sentence and the two words that it must find, as places. */
export function verbOf({ partners }) {
  const verb = Math.max(...Object.keys(partners[NEEDS[0]]).map(Number));
  return { verb, wanted: NEEDS.map((relation) => partners[relation][verb]) };
}

/** Words with the classes of nouns; the verb stands out, and the words that it must find. */
function marked(words, { verb, wanted }) {
  return words.map((word, place) => {
    const text = element("span", {}, word);
    if (place === verb) text.className = "attn-query";
    if (wanted.includes(place)) text.className = "attn-key";
    const tag = element("span", { class: "attn-class" }, concord.classOf(word)?.slice(1) ?? "");
    return element("span", { class: "attn-said" }, text, tag);
  });
}

/** What the verb's two answers must be, and why: each has the class of its noun. */
function createRule({ words, answers }, { verb, wanted }) {
  const word = (place, name) => element("span", { class: name }, words[place]);
  const [subject, object] = wanted.map((place) => concord.classOf(words[place]).slice(1));
  const [who, whom] = Object.entries(concord.readouts).map(
    ([readout, texts]) => texts[answers[readout][verb]],
  );
  return [
    "In a made-up language nouns have classes: ",
    word(wanted[0], "attn-key"),
    ` ${subject}, `,
    word(wanted[1], "attn-key"),
    ` ${object}. So `,
    word(verb, "attn-query"),
    ` must answer “who?” with ${who} (${subject} + ${who.slice(subject.length)}) and “whom?” with ${whom}. Arcs: where its heads look.`,
  ];
}

/** What a model answers a verb's two questions, and below it what `before` did. */
function createAsked() {
  const node = element("div", { class: "attn-asked" });
  let questions = null; // as questionsOf has them
  let verb = null; // its place
  let slots = null;
  let ghosts = [];

  function show(sentence) {
    const { words, partners } = sentence;
    verb = verbOf(sentence).verb;
    questions = questionsOf(sentence, concord);
    for (const question of questions[verb]) {
      const word = words[partners[question.relation][verb]];
      question.what = `${question.what === "subject" ? "who" : "whom"} (${word})`;
    }
    slots = createSlots(questions[verb], concord.readouts, " must be ");
    ghosts = slots.nodes.map((slot) => {
      const ghost = element("span", { class: "attn-ghost" });
      slot.append(ghost);
      return ghost;
    });
    node.replaceChildren(...slots.nodes);
  }

  const givenBy = ({ logits }) => answeredBy(logits, questions, concord)[verb];

  /** `finders` has for each question the head that looks at its word, or null. */
  function draw(answer, before, finders) {
    slots.draw(questions[verb], givenBy(answer));
    slots.nodes.forEach((slot, i) => {
      if (finders[i] === null) slot.style.removeProperty("--attn-head");
      else useHeadColor(slot, finders[i]);
    });
    for (const ghost of ghosts) write(ghost, "");
    if (before === null) return;
    const given = givenBy(before);
    questions[verb].forEach(({ readout, right }, i) => {
      const mark = given[i] === right ? "✓" : "✗";
      const said = concord.readouts[readout][given[i]];
      write(ghosts[i], `${headsInWords(before.numHeads)}: ${said} ${mark}`);
    });
  }
  return { node, show, draw };
}

/** How often the verb's two questions are answered right, and how often they were before. */
function createShares() {
  const rows = ["its subject (who)", "its object (whom)"].map((name) => {
    const bar = createBar("attn-right");
    const node = element("div", { class: "attn-share" }, element("span", {}, name), ...bar.nodes);
    return { node, draw: bar.draw };
  });
  const heading = createHeading("Right in new sentences");
  const ghost = element("span");
  const legend = createLegend(["attn-baseline-key", "guessing"], ["attn-before-key", ghost]);
  const titles = element("div", { class: "attn-share-titles" }, heading, legend);
  const node = element("div", { class: "attn-shares" }, titles, ...rows.map((row) => row.node));

  function draw(run, before) {
    const shareOf = (of, i) => of?.evaluation?.relations[NEEDS[i]];
    rows.forEach((row, i) => row.draw(shareOf(run, i), CHANCE, shareOf(before, i)));
    const shares = before && NEEDS.map((_, i) => shortNumber(shareOf(before, i)));
    write(ghost, before ? `${headsInWords(before.numHeads)}: ${shares.join(", ")}` : "");
    ghost.parentNode.classList.toggle("attn-absent", !before);
  }
  return { node, draw };
}

/** Where it is said why: a link on the site, and its lesson's name in a notebook. */
function createWhy() {
  const words = "Why does it take two? See L04";
  const root = document.documentElement.dataset.content_root;
  if (root === undefined) return element("span", {}, words);
  return element("a", { href: new URL(root + WHY, location) }, `${words} →`);
}

/** Draw the form into `el`; `readState` is that of widget.js. Returns how to end it. */
export function renderSmall({ model, el }, readState) {
  const { counts, heldOut, spec } = readState(model);
  const runs = sharedRuns(model, { heldOut, startTraining });
  let state = null; // as readState has it
  let answer = null; // {logits, weights} of the model that is shown; weights are [h, T, T]
  const answers = new WeakMap(); // a run -> its last answer, with its sentence
  const isLearned = (of) => NEEDS.every((name) => hasLearned(of.evaluation, name));
  const training = createTraining(model, runs, {
    counts,
    few: true,
    forget: () => model.set("muted", []),
    next(run) {
      const more = counts.find((count) => count > run.numHeads);
      return more && !isLearned(run) ? [`Try ${headsInWords(more)}`, more] : null;
    },
  });
  const { run } = training;
  const shares = createShares();
  const asked = createAsked();
  const arcs = createArcs();
  const about = createNote();
  const key = createLegend();
  const ghostKey = element("span");
  const [ghostEntry] = createLegend(["attn-arc-key", ghostKey]).children;
  key.classList.add("attn-colors");
  const live = createLive();
  const why = element("p", { class: "attn-why" }, createWhy());
  const more = createFold(makeTables, () => digestNotes(run()));
  more.node.classList.add("attn-more");
  const rng = sfc32(Math.floor(2 ** 32 * Math.random()));
  const another = createButton("Another sentence", () => {
    const drawn = Array.from({ length: OFFERED }, () => concord.draw(rng).words);
    const gap = (words) => Math.abs(words.length - state.sentence.words.length);
    const [chosen] = drawn.sort((one, other) => gap(one) - gap(other));
    setterOf(model)("sentence", chosen.join(" "));
  });
  const tools = element("div", { class: "attn-row" }, ...training.others, another);
  more.node.firstChild.after(tools, element("p", { class: "attn-note" }, training.text));
  const root = createWidget(
    "head-lab",
    "How many heads does a verb need?",
    element(
      "div",
      { class: "attn-look attn-wide" },
      about,
      createControls(training.heads, training.main),
      training.bar,
      key,
      arcs.node,
      asked.node,
      shares.node,
      element("div", { class: "attn-verdict" }, live, why),
    ),
    more.node,
  );
  root.classList.add("attn-small");

  /** What a model answers before any training: a worker will begin with the same weights. */
  function answerAtRandom() {
    const untrained = new TransformerModel(specWith(spec, state.numHeads));
    untrained.draw(rngOfWeights(state.seed));
    const { logits, weights } = untrained.answer(state.sentence);
    return { logits, weights: weights[0], numHeads: state.numHeads };
  }

  /** The newest other run that is over. */
  function runBefore() {
    return runs.all.findLast((one) => one !== run() && runs.isOver(one) && one.evaluation);
  }

  /** The rows of the verb in an answer's heads. */
  function rowsOf({ weights, numHeads }) {
    const T = state.sentence.words.length;
    const { verb } = verbOf(state.sentence);
    return Array.from({ length: numHeads }, (_, head) => {
      const from = (head * T + verb) * T;
      return Array.from(weights.subarray(from, from + T));
    });
  }

  function looksOf(answer, isBefore = false) {
    const { verb: from } = verbOf(state.sentence);
    return rowsOf(answer).flatMap((row, head) =>
      row.map((weight, to) => ({ from, to, head, weight, isBefore })),
    );
  }

  function makeTables() {
    const { words } = state.sentence;
    const rows = rowsOf(answer).map((row, head) => [
      `head ${head + 1}`,
      ...row.map((weight) => shortNumber(weight, 3)),
    ]);
    const caption = `What ${words[verbOf(state.sentence).verb]} looks at`;
    return [createTable(caption, ["who looks", ...words], rows)];
  }

  function drawAnswer() {
    const { words } = state.sentence;
    const { verb, wanted } = verbOf(state.sentence);
    const kept = answers.get(runBefore());
    const before = kept?.sentence === state.sentence ? kept : null;
    const rows = rowsOf(answer);
    const finders = wanted.map((place) => {
      const head = rows.findIndex((row) => row[place] > FOUND);
      return head < 0 ? null : head;
    });
    asked.draw(answer, before, finders);
    const spoken = rows.map((row, head) => {
      const on = wanted.map((place) => `${words[place]} ${shortNumber(row[place])}`);
      return `Head ${head + 1}: ${on.join(", ")}.`;
    });
    const looks = [...(before ? looksOf(before, true) : []), ...looksOf(answer)];
    drawKey(before);
    arcs.draw(looks, `Weights of ${words[verb]}. ${spoken.join(" ")}`);
    more.draw(null, { summary: "More", label: "Table of the weights" });
  }

  /** Which head has which color; `before` is the answer whose arcs are gray, or null. */
  function drawKey(before) {
    if (key.childElementCount !== state.numHeads + 1) {
      const heads = Array.from({ length: state.numHeads }, (_, i) => [createSwatch(i), `${i + 1}`]);
      key.replaceChildren("head", ...createLegend(...heads).children, ghostEntry);
    }
    write(ghostKey, before ? `before: ${headsInWords(before.numHeads)}` : "");
    ghostEntry.hidden = !before;
  }

  const ask = createAsker((found) => {
    const { numHeads } = found.run;
    answers.set(found.run, { ...found, numHeads });
    if (found.run !== run() || found.sentence !== state.sentence) return;
    answer = { ...found, numHeads };
    drawAnswer();
  });

  function drawRun() {
    const shown = run();
    const begun = training.drawRun();
    shares.draw(shown, runBefore());
    if (shown === null) live.textContent = "Not trained yet: these weights are random.";
    else if (begun !== null) write(live, begun);
    const isTold = runs.isOver(shown) && shown.evaluation;
    if (isTold) live.textContent = sayVerb(shown);
    why.hidden = !(isTold && shown.numHeads > 1 && isLearned(shown));
    if (shown !== null && shown.state !== "failed" && !shown.isAsleep) ask(shown, state.sentence);
  }

  function draw() {
    const before = state;
    state = readState(model);
    const { words } = state.sentence;
    const text = words.join(" ");
    if (before?.sentence.words.join(" ") === text) state.sentence = before.sentence;
    else {
      const places = verbOf(state.sentence);
      asked.show(state.sentence);
      arcs.show(marked(words, places));
      about.replaceChildren(...createRule(state.sentence, places));
    }
    training.draw(state);
    const isOther = ["numHeads", "seed", "trained", "sentence"].some(
      (name) => state[name] !== before?.[name],
    );
    if (isOther) {
      answer = answerAtRandom();
      drawAnswer();
    }
    drawRun();
  }

  const unwatch = watchInSight(runs, root, (changed) => changed === run() && drawRun());
  draw();
  el.replaceChildren(root);
  const off = redrawOn(model, TRAITS, draw);
  return () => {
    training.end();
    unwatch();
    off();
  };
}
