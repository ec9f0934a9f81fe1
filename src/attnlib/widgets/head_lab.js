// HeadLab: choose a number of heads, train a model with them, and see what its heads have learned.

import { makeChance } from "./engine/chance.js";
import { concord } from "./engine/language.js";
import { streamOf } from "./engine/sentences.js";
import { checkSpec } from "./engine/spec.js";
import { checkRecipe } from "./engine/training.js";
import { createCurves, headsInWords } from "./head_lab_curve.js";
import { bestOffsets, CHANCE, nameOf, specialty } from "./head_lab_findings.js";
import { createKept } from "./head_lab_kept.js";
import { createLargeMap, createSwitches, createTiles, truthOf } from "./head_lab_maps.js";
import { createRepeat } from "./head_lab_repeat.js";
import { createAsker, maskOf, sharedRuns } from "./head_lab_runs.js";
import { createScores } from "./head_lab_scores.js";
import { answeredBy, createSentence, questionsOf } from "./head_lab_sentence.js";
import { sayAnswers, sayLearned, sayProgress, saySharing } from "./head_lab_words.js";
import { element } from "./shared/dom.js";
import { shortNumber } from "./shared/numbers.js";
import {
  createButton,
  createControls,
  createHeading,
  createLive,
  createNote,
  createSlider,
  createWeightsLegend,
  createWidget,
} from "./shared/parts.js";
import { readerOf, redrawOn, setterOf } from "./shared/state.js";
import { createFold, createTable } from "./shared/tables.js";

const OF_HELD_OUT = 2 ** 31; // the seed of the sentences that no model is trained on, as in Python
const SEEDS = 5; // with which each number of heads is repeated
const SETTLED = 300; // milliseconds; a slider that moves on within them trains nothing
const TRAITS = ["num_heads", "seed", "trained", "sentence", "head", "muted"];

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const counts = read.list("counts", (h) => Number.isInteger(h) && h >= 1, "numbers of heads");
  const most = Math.max(...counts);
  const isOffered = (value) => counts.includes(value);
  const numHeads = read.read("num_heads", isOffered, `one of ${counts.join(", ")}`);
  const seed = read.index("seed", 1000);
  const trained = read.read("trained", (value) => typeof value === "boolean", "true or false");
  const head = Math.min(read.index("head", most), numHeads - 1);
  const muted = read.indices("muted", most, "heads").filter((other) => other < numHeads);
  const heldOut = read.whole("held_out", 10_000);
  const [spec, recipe] = [model.get("spec"), model.get("recipe")];
  checkSpec(spec);
  checkRecipe(recipe);
  const sentence = concord.read(read.text("sentence"));
  return { counts, numHeads, seed, trained, head, muted, heldOut, spec, recipe, sentence };
}

/** What trains, pauses and stops a model; each button is always there, and says what it would do. */
function createButtons({ train, pause, resume, stop, reseed }) {
  let press = train;
  const main = createButton("Train", () => press());
  main.classList.add("attn-main");
  const end = createButton("Stop", stop);
  const seed = createButton("Another seed", reseed);
  const node = element("div", { class: "attn-row attn-buttons" }, main, end, seed);
  function draw(run) {
    const [text, action] = {
      training: ["Pause", pause],
      paused: ["Go on", resume],
    }[run?.state] ?? [run === null ? "Train" : "Train again", train];
    main.textContent = text;
    press = action;
    const canStop = ["training", "paused"].includes(run?.state);
    end.setAttribute("aria-disabled", String(!canStop));
  }
  return { node, draw };
}

/** A function that draws only what it hasn't drawn last. */
function onChange(draw) {
  let last = null;
  return (...shown) => {
    if (last?.length === shown.length && shown.every((value, i) => value === last[i])) return;
    last = shown;
    draw(...shown);
  };
}

function render({ model, el }) {
  const { counts, heldOut, spec, recipe } = readState(model);
  const { relations } = concord;
  const chance = makeChance(Math.floor(2 ** 32 * Math.random()));
  const runs = sharedRuns(model, { spec, recipe, heldOut });
  const set = setterOf(model);

  let state = null; // as readState has it
  let answer = null; // the last one of the model that is shown
  let ofRest = null; // {run, evaluation} without the muted heads
  let isAgain = false; // whether a model that was trained before is being trained once more
  let largeMap = null;
  let fixedDistances = null; // what the best of them gets in each relation
  let settling; // a timer

  const slider = createSlider("Heads", {
    max: counts.length - 1,
    ticks: counts.map(String),
    choose(position) {
      set("muted", []);
      set("num_heads", counts[position]);
    },
  });
  const run = () => runs.find(state.numHeads, state.seed) ?? null;
  const buttons = createButtons({
    train() {
      isAgain = false;
      if (state.trained) runs.start(state.numHeads, state.seed);
      else set("trained", true);
    },
    pause: () => runs.pause(run()),
    resume: () => runs.resume(run()),
    stop: () => ["training", "paused"].includes(run()?.state) && runs.stop(run()),
    reseed: () => set("seed", (state.seed + 1) % 1000),
  });
  const seedText = element("span", { class: "attn-seed" });
  const bar = element("progress", { max: recipe.steps, "aria-label": "Training" });
  const progress = element("span", { class: "attn-progress-text" });
  const progressLine = element("div", { class: "attn-progress" }, bar, progress);
  const scores = createScores(relations);
  const curves = createCurves(recipe.steps);
  const sentence = createSentence({
    choose: ({ words }) => set("sentence", words.join(" ")),
    draw: () => concord.draw(chance),
  });
  const tiles = createTiles({ choose: (head) => set("head", head) });
  const switches = createSwitches({
    mute(head, isMuted) {
      const others = state.muted.filter((other) => other !== head);
      set("muted", isMuted ? [...others, head].sort((a, b) => a - b) : others);
    },
  });
  const mapHeading = createHeading();
  const mapPlace = element("div", { class: "attn-map-place" });
  const reading = createNote();
  reading.classList.add("attn-read");
  const large = element("div", {}, mapHeading, mapPlace, reading);
  const sharing = element("div", { class: "attn-sharing" });
  const kept = createKept(["verb>subject", "verb>object", "their>thing"], (chosen) => {
    set("muted", []);
    set("num_heads", chosen.numHeads);
    set("seed", chosen.seed);
  });
  const repeat = createRepeat(counts, relations, SEEDS, {
    start: () => runs.repeat(counts, SEEDS),
    stop: () => runs.stopRepeating(),
  });
  const live = createLive();
  const numbers = createFold(makeTables);
  const root = createWidget(
    "head-lab",
    "How many heads does a model need?",
    createNote(
      "Press Train: a small model learns to answer questions about sentences, here in your " +
        "browser. Then move the slider, and watch what more heads learn.",
    ),
    createControls(slider.node, element("div", {}, buttons.node, seedText)),
    progressLine,
    live,
    element("div", { class: "attn-panels attn-first" }, scores.node, curves.node),
    createHeading("A sentence, and what the model answers about it"),
    createNote(
      "Nouns of this made language, Concord, are of four classes. The words around a noun agree with " +
        "it: a verb with its subject, and with its object. Choose other words, or type a sentence.",
    ),
    sentence.node,
    createHeading("Where each head looks. Untick a head to mute it"),
    switches.node,
    element(
      "div",
      { class: "attn-panels attn-second" },
      element("div", { class: "attn-heads" }, tiles.node, sharing),
      large,
    ),
    createWeightsLegend(
      ["attn-frame-key", "the word that must be found"],
      ["attn-faint-key", "faint rows: words that are asked nothing"],
    ),
    kept.node,
    repeat.node,
    numbers.node,
  );

  /** The weights of each head, [T, T] one after the other, of what is shown now; or null. */
  function mapsOf() {
    if (answer === null) return null;
    const T = answer.sentence.words.length;
    const size = T * T;
    return Array.from({ length: answer.run.numHeads }, (_, head) =>
      answer.weights.subarray(head * size, (head + 1) * size),
    );
  }

  /** Sentences are drawn only once there is something to be held against them. */
  function baselines() {
    const sentences = () => Array.from({ length: heldOut }, streamOf(concord, OF_HELD_OUT));
    fixedDistances ??= bestOffsets(sentences(), relations);
    return fixedDistances;
  }

  function makeTables() {
    const evaluation = run()?.evaluation ?? null;
    const heads = Array.from({ length: state.numHeads }, (_, head) => `head ${head + 1}`);
    const learned = evaluation === null ? [] : ["right answers", ...heads];
    const rows = relations.map(({ name }) => {
      const { share, offset } = baselines()[name];
      const distance = `${shortNumber(share, 3)} (${offset > 0 ? "+" : "−"}${Math.abs(offset)})`;
      const masses = evaluation?.mass[name]?.[0];
      const found = masses ? [evaluation.relations[name], ...masses] : [];
      const numbers = found.map((number) => shortNumber(number, 3));
      return [nameOf(name), shortNumber(CHANCE), distance, ...numbers];
    });
    const caption = "Right answers, and each head's weight on the true partner";
    const columns = ["relation", "guessing", "best fixed distance", ...learned];
    return [createTable(caption, columns, rows)];
  }

  const ask = createAsker((found) => {
    if (found.run !== run() || found.sentence !== state.sentence) return;
    answer = found;
    drawAnswer();
  });

  /** Have the model asked about the sentence, if there is one. */
  function look() {
    const asked = run();
    if (asked === null || asked.state === "failed" || asked.isAsleep) return;
    ask(asked, state.sentence, state.muted);
  }

  /** Have the model evaluated without its muted heads. */
  async function evaluateMuted() {
    const [asked, { muted }] = [run(), state];
    ofRest = null;
    if (asked === null || !runs.isOver(asked) || asked.isAsleep || muted.length === 0) return;
    try {
      const headMasks = [maskOf(asked.numHeads, muted)];
      const found = await asked.training.ask("evaluation", { headMasks });
      if (asked !== run() || muted.join() !== state.muted.join()) return;
      ofRest = { run: asked, evaluation: found };
      drawRun();
    } catch {
      // The model is gone; a new one will be evaluated.
    }
  }

  function drawAnswer() {
    if (answer?.run !== run()) answer = null; // its model was given up
    const { numHeads, head, muted } = state;
    const truth = truthOf(state.sentence, relations);
    const questions = questionsOf(state.sentence);
    const maps = mapsOf();
    const mass = run()?.evaluation?.mass;
    const specialties = mass && maskOf(numHeads, []).map((_, i) => specialty(i, mass, baselines()));
    const given = answer === null ? null : answeredBy(answer.logits, questions);
    sentence.draw(state.sentence, questions, given);
    tiles.draw({ count: numHeads, maps, truth, chosen: head, muted, specialties });
    largeMap.map.draw(maps?.[head] ?? null, truth, head);
    const own = specialties?.[head];
    const is = own
      ? `best at ${nameOf(own.relation)}, ${shortNumber(own.mass)} (a fixed distance: ${shortNumber(own.share)})`
      : "at nothing better than a fixed distance";
    mapHeading.textContent = `Head ${head + 1}${specialties ? `: ${is}` : ""}`;
    drawReading();
    const isNew = given !== null && answer.muted.join() === muted.join();
    if (isNew && runs.isOver(run())) live.textContent = sayLive(questions, given);
  }

  function sayLive(questions, given) {
    const learned = state.muted.length === 0 && run().evaluation ? `${sayLearned(run())} ` : "";
    return learned + sayAnswers(questions, given, state.muted);
  }

  function drawReading() {
    const cell = largeMap.map.cursor();
    const weights = mapsOf()?.[state.head];
    const { words } = state.sentence;
    reading.textContent = "Point at a cell, or move there by arrow keys, to read its weight.";
    if (cell === null || !weights) return;
    const { row, column } = cell;
    const weight = shortNumber(weights[row * words.length + column]);
    const partners = relations.filter(({ name }) => state.sentence.partners[name][row] === column);
    const truth = partners.map(({ name }) => ` That is its ${name.split(">")[1]}.`).join("");
    reading.textContent = `${words[row]} looks at ${words[column]} with ${weight}.${truth}`;
  }

  const drawScores = onChange((evaluation, withoutMuted, shown) => {
    const distances = evaluation === null ? null : baselines();
    scores.draw(withoutMuted ?? evaluation, withoutMuted && evaluation, distances);
    numbers.draw(shown, { label: "Table of the scores" });
    const found = evaluation === null ? [] : saySharing(evaluation.mass, relations);
    sharing.hidden = found.length === 0;
    sharing.replaceChildren(
      createHeading("What one word needs, and which heads look for it best"),
      ...found.map(({ text, whose, isShared }) => {
        const line = element("p", {}, `${text}: `, element("strong", {}, whose));
        line.classList.toggle("attn-shared", isShared);
        return line;
      }),
    );
  });

  const drawMany = onChange((shown, isRepeating, problem, ...over) => {
    const whole = over.filter(({ state }) => state === "done");
    const repeated = whole.filter(({ seed }) => seed < SEEDS).length;
    kept.draw(over, shown);
    repeat.draw(whole, shown, { repeated, isRepeating, problem });
  });

  function drawRun() {
    const shown = run();
    buttons.draw(shown);
    bar.value = shown?.steps ?? 0;
    progress.textContent = sayProgress(shown, recipe.steps);
    curves.draw(runs.all, shown);
    const isKnown = runs.isOver(shown) && ofRest?.run === shown;
    drawScores(shown?.evaluation ?? null, isKnown ? ofRest.evaluation : null, shown);
    const problem = runs.all.find((one) => one.isBehind && one.state === "failed")?.problem ?? "";
    const over = runs.all.filter((one) => runs.isOver(one) && one.evaluation);
    drawMany(shown, runs.isRepeating(), problem, ...over);
    if (shown === null) live.textContent = "";
    if (shown?.state === "failed") live.textContent = shown.problem.replace(/\.?$/, ".");
    if (shown?.state === "training" && shown.steps === 0) {
      const who = `${headsInWords(shown.numHeads)}, seed ${shown.seed}`;
      const again = "This model was trained before, and is trained again";
      live.textContent = `${isAgain ? again : "Training"}: ${who}.`;
    }
  }

  /** Train what is chosen, once a reader has asked for models; a moving slider is waited for. */
  function trainChosen(delay) {
    clearTimeout(settling);
    const shown = run();
    if (!state.trained || (shown !== null && !shown.isAsleep)) return;
    settling = setTimeout(() => runs.start(state.numHeads, state.seed), delay);
  }

  function draw() {
    const before = state;
    state = readState(model);
    if (before?.sentence.words.join(" ") === state.sentence.words.join(" ")) {
      state.sentence = before.sentence;
    }
    const { numHeads, seed } = state;
    const isOther = numHeads !== before?.numHeads || seed !== before?.seed;
    if (isOther || state.sentence !== before?.sentence) answer = null;
    if (state.sentence !== largeMap?.sentence) {
      const map = createLargeMap(state.sentence.words, { read: drawReading });
      largeMap = { sentence: state.sentence, map };
      mapPlace.replaceChildren(map.node);
    }
    slider.draw(counts.indexOf(numHeads), headsInWords(numHeads));
    seedText.textContent = `seed ${seed}`;
    switches.draw(numHeads, state.muted);
    if (isOther || state.muted.join() !== before?.muted.join()) evaluateMuted();
    if (isOther && before === null) isAgain = state.trained;
    trainChosen(before === null || state.trained !== before.trained ? 0 : SETTLED);
    drawRun();
    drawAnswer();
    look();
  }

  const unwatch = runs.watch((changed) => {
    if (changed !== run()) {
      // How far a model in the background has come is not to be seen.
      if (changed?.state !== "training" || changed.steps === 0) drawRun();
      return;
    }
    if (runs.isOver(changed) && changed.evaluation) evaluateMuted();
    drawRun();
    look();
  });
  draw();
  el.replaceChildren(root);
  const off = redrawOn(model, TRAITS, draw);
  return () => {
    clearTimeout(settling);
    unwatch();
    off();
  };
}

export default { render };
