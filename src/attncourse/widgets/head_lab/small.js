// HeadLab's smallest form: few numbers of heads, two questions of one verb, and where each head looks.

import { concord } from "../engine/language.js";
import { TransformerModel } from "../engine/model.js";
import { chanceOfWeights } from "../engine/streams.js";
import { startTraining } from "../engine/trainer.js";
import { createTraining } from "../lab/controls.js";
import { digestNotes } from "../lab/digest.js";
import { createAsker, sharedRuns, specWith, watchInSight } from "../lab/runs.js";
import { createBar } from "../shared/bar.js";
import { useHeadColor } from "../shared/color.js";
import { element } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import {
  createControls,
  createHeading,
  createLegend,
  createLive,
  createNote,
  createSwatch,
  createWeightsLegend,
  createWidget,
} from "../shared/parts.js";
import { redrawOn } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { CHANCE } from "./findings.js";
import { createPicture } from "./maps.js";
import { answeredBy, createSlots, questionsOf } from "./sentence.js";
import { sayVerb } from "./words.js";

const NEEDS = ["verb>subject", "verb>object"];
const TRAITS = ["num_heads", "seed", "trained", "sentence"];

/** The last verb of a sentence and the two words that it must find, as places. */
export function verbOf({ partners }) {
  const verb = Math.max(...Object.keys(partners[NEEDS[0]]).map(Number));
  return { verb, wanted: NEEDS.map((relation) => partners[relation][verb]) };
}

/** Words in which the verb stands out, and those that it must find. */
function marked(words, { verb, wanted }) {
  const nodes = words.map((word) => element("span", {}, word));
  nodes[verb].className = "attn-query";
  for (const place of wanted) nodes[place].className = "attn-key";
  return nodes;
}

/** A line for each head: how much it looks from one word at each word of the sentence. */
function createLines() {
  const picture = createPicture();
  const words = element("div", { class: "attn-line-words", "aria-hidden": "true" });
  const names = element("div", { class: "attn-line-names", "aria-hidden": "true" });
  const plot = element("div", { class: "attn-line-plot", role: "img" }, picture.node);
  const node = element("div", { class: "attn-head-lines" }, words, names, plot);
  let heads = [];

  function drawWords(texts, places) {
    words.replaceChildren(...marked(texts, places));
    node.style.setProperty("--tokens", texts.length);
  }

  /** `rows` has the weights of each head, [h, T]. */
  function draw(rows, count, { texts, wanted }, spoken) {
    if (heads.length !== count) {
      heads = Array.from({ length: count }, (_, head) => {
        const name = element("span", {}, createSwatch(head), `${head + 1}`);
        useHeadColor(name, head);
        return name;
      });
      names.replaceChildren(...heads);
    }
    const places = Array.from({ length: count }, (_, head) => head);
    const pairs = places.flatMap((head) => wanted.map((place) => [head, place]));
    picture.draw(rows, { rows: count, T: texts.length, asking: new Set(places), pairs });
    plot.setAttribute("aria-label", spoken);
  }
  return { node, drawWords, draw };
}

/** A sentence, and below it what a model answers its verb's two questions. */
function createAsked() {
  const spoken = element("p", { class: "attn-spoken" });
  const asked = element("p", { class: "attn-asked" });
  let questions = null; // as questionsOf has them
  let verb = null; // its place
  let slots = null;

  function show(sentence) {
    const { words, partners } = sentence;
    const places = verbOf(sentence);
    verb = places.verb;
    questions = questionsOf(sentence, concord);
    for (const question of questions[verb]) {
      question.what += ` ${words[partners[question.relation][verb]]}`;
    }
    slots = createSlots(questions[verb], concord.readouts);
    spoken.replaceChildren(...marked(words, places).flatMap((word) => [word, " "]));
    const who = element("span", { class: "attn-query" }, words[verb]);
    asked.replaceChildren(element("span", {}, who, " answers"), ...slots.nodes);
  }

  function draw(logits) {
    slots.draw(questions[verb], answeredBy(logits, questions, concord)[verb]);
  }
  return { nodes: [spoken, asked], show, draw };
}

/** How often the verb's two questions are answered right. */
function createShares() {
  const rows = ["about its subject", "about its object"].map((name) => {
    const bar = createBar("attn-right");
    const node = element("div", { class: "attn-share" }, element("span", {}, name), ...bar.nodes);
    return { node, draw: bar.draw };
  });
  const heading = createHeading("Right in new sentences");
  const legend = createLegend(["attn-dumb-key", "guessing"]);
  const titles = element("div", { class: "attn-share-titles" }, heading, legend);
  const node = element("div", {}, titles, ...rows.map((row) => row.node));
  function draw(evaluation) {
    rows.forEach((row, i) => row.draw(evaluation?.relations[NEEDS[i]], CHANCE));
  }
  return { node, draw };
}

/** Draw the form into `el`; `readState` is that of widget.js. Returns how to end it. */
export function renderSmall({ model, el }, readState) {
  const { counts, heldOut, spec } = readState(model);
  const runs = sharedRuns(model, { heldOut, startTraining });
  let state = null; // as readState has it
  let answer = null; // {logits, weights} of the model that is shown; weights are [h, T, T]
  const training = createTraining(model, runs, { counts, forget: () => model.set("muted", []) });
  const { run } = training;
  const shares = createShares();
  const asked = createAsked();
  const lines = createLines();
  const heading = createHeading();
  const live = createLive();
  const numbers = createFold(makeTables);
  const root = createWidget(
    "head-lab",
    "How many heads does a verb need?",
    createNote(
      "In a made-up language nouns are of class ba, ki, lu or mo. A verb answers bana if its subject " +
        "is of class ba, -lu if its object is of class lu. Press Train: a small model learns that in " +
        "your browser.",
    ),
    createControls(training.slider, training.buttons),
    training.progress,
    ...asked.nodes,
    shares.node,
    heading,
    lines.node,
    live,
    createWeightsLegend(["attn-frame-key", "its subject, its object"]),
    numbers.node,
  );
  root.classList.add("attn-small");

  /** What a model answers before any training: a worker will begin with the same weights. */
  function answerAtRandom() {
    const untrained = new TransformerModel(specWith(spec, state.numHeads));
    untrained.draw(chanceOfWeights(state.seed));
    const { logits, weights } = untrained.answer(state.sentence);
    return { logits, weights: weights[0] };
  }

  /** The rows of the verb in all heads, [h, T]. */
  function rowsOfVerb() {
    const T = state.sentence.words.length;
    const { verb } = verbOf(state.sentence);
    const rows = new Float64Array(state.numHeads * T);
    for (let head = 0; head < state.numHeads; head++) {
      const from = (head * T + verb) * T;
      rows.set(answer.weights.subarray(from, from + T), head * T);
    }
    return rows;
  }

  function makeTables() {
    const { words } = state.sentence;
    const rows = rowsOfVerb();
    const numbersOf = (head) => rows.subarray(head * words.length, (head + 1) * words.length);
    const cells = (head) => Array.from(numbersOf(head), (weight) => shortNumber(weight, 3));
    const heads = Array.from({ length: state.numHeads }, (_, i) => [`head ${i + 1}`, ...cells(i)]);
    const caption = `What ${words[verbOf(state.sentence).verb]} looks at`;
    return [...digestNotes(run()), createTable(caption, ["", ...words], heads)];
  }

  function drawAnswer() {
    asked.draw(answer.logits);
    const { words } = state.sentence;
    const places = verbOf(state.sentence);
    const rows = rowsOfVerb();
    const weightOn = (head, place) => shortNumber(rows[head * words.length + place]);
    const on = (head) => places.wanted.map((place) => `${words[place]} ${weightOn(head, place)}`);
    const spoken = Array.from(
      { length: state.numHeads },
      (_, i) => `Head ${i + 1}: ${on(i).join(", ")}.`,
    );
    const shown = { texts: words, wanted: places.wanted };
    lines.draw(
      rows,
      state.numHeads,
      shown,
      `Weights of ${words[places.verb]}. ${spoken.join(" ")}`,
    );
    numbers.draw(null, { label: "Table of the weights" });
  }

  const ask = createAsker((found) => {
    if (found.run !== run() || found.sentence !== state.sentence) return;
    answer = found;
    drawAnswer();
  });

  function drawRun() {
    const shown = run();
    const begun = training.drawRun();
    shares.draw(shown?.evaluation ?? null);
    if (shown === null) live.textContent = `Not trained yet: random weights, seed ${state.seed}.`;
    else if (begun !== null) live.textContent = begun;
    if (runs.isOver(shown) && shown.evaluation) live.textContent = sayVerb(shown, counts);
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
      const verb = element("span", { class: "attn-query" }, words[places.verb]);
      heading.replaceChildren("Where each head looks from ", verb);
      asked.show(state.sentence);
      lines.drawWords(words, places);
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
