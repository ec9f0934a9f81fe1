// NameLab: a small GPT learns to make up names, and shows what it expects after a beginning.

import { names } from "../engine/names.js";
import { checkSpec, should } from "../engine/spec.js";
import { startTraining } from "../engine/trainer.js";
import { checkRecipe } from "../engine/training.js";
import { createTraining } from "../lab/controls.js";
import { areDigests, areDigits, digestNotes } from "../lab/digest.js";
import { sharedRuns } from "../lab/runs.js";
import { element } from "../shared/dom.js";
import {
  createControls,
  createLive,
  createNote,
  createPanes,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createFold } from "../shared/tables.js";
import { createHeldOutCurves } from "./curve.js";
import { createNext } from "./next.js";
import { createRules } from "./rules.js";
import { createSamples } from "./samples.js";
import { createMind, weightsOf } from "./weights.js";
import { sayHeads, sayLearned, sayNext } from "./words.js";

const GUESSES = ["uniform", "unigram", "bigram", "floor"];
const TRAITS = ["num_heads", "seed", "trained", "beginning", "temperature", "top_k", "draw"];
const HOTTEST = 2;

/** Throw unless a spec describes a model of one layer that tells the next letter of names. */
function checkForm(spec) {
  checkSpec(spec);
  const letters = names.vocabulary.length;
  should(spec.blocks.length === 1, "blocks", "one, whose heads are shown", spec.blocks.length);
  should(spec.vocabulary_size === letters, "vocabulary_size", letters, spec.vocabulary_size);
  should(spec.length === names.length, "length", names.length, spec.length);
  should(spec.causal, "causal", "true", spec.causal);
  const isNext = Object.keys(spec.readouts).join() === "next" && spec.readouts.next === letters;
  should(isNext, "readouts", `next alone, with ${letters} answers`, spec.readouts);
}

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const isCount = (value) => Number.isInteger(value) && value >= 1;
  const isLoss = (value) => Number.isFinite(value) && value > 0;
  const areLosses = (value) => GUESSES.every((name) => isLoss(value?.[name]));
  const counts = read.list("counts", isCount, "numbers of heads");
  const [spec, recipe] = ["spec", "recipe"].map((name) => model.get(name));
  checkForm(spec);
  checkRecipe(recipe);
  for (const name of ["embedding_std", "readout_std"]) {
    const std = recipe.model?.[name] ?? 0;
    should(std >= 0 && std < Infinity, name, "0 or more", std);
  }
  const isOffered = (value) => counts.includes(value) && spec.d_model % value === 0;
  const isWarm = (value) => Number.isFinite(value) && value >= 0 && value <= HOTTEST;
  const beginning = read.text("beginning");
  if (beginning !== "") names.read(beginning);
  return {
    counts,
    guesses: read.read("guesses", areLosses, `losses above 0 of ${GUESSES.join(", ")}`),
    heldOut: read.whole("held_out", 10_000),
    numHeads: read.read("num_heads", isOffered, `one of ${counts.join(", ")}`),
    seed: read.index("seed", 1000),
    trained: read.read("trained", (value) => typeof value === "boolean", "true or false"),
    digest: read.read("digest", areDigits, "eight hexadecimal digits, or none"),
    beginning: beginning.toLowerCase(),
    temperature: read.read("temperature", isWarm, `a number from 0 to ${HOTTEST}`),
    topK: read.whole("top_k", names.vocabulary.length),
    draw: read.index("draw", 1000),
    setting: {
      key: names.name,
      name: names.name,
      command: recipe.name,
      digests: read.read("digests", areDigests, "digits of models by heads and seed"),
      spec,
      recipe,
      given: null,
      evaluations: 20,
    },
  };
}

function render({ model, el }) {
  const { counts, heldOut, guesses, setting } = readState(model);
  const runs = sharedRuns(model, { heldOut, startTraining });
  const set = setterOf(model);
  const training = createTraining(model, runs, { counts, sayHeads: (h) => sayHeads(h, setting) });
  const { run } = training;
  const mind = createMind(setting);
  const curves = createHeldOutCurves(setting.recipe.steps, guesses);
  const samples = createSamples(set, HOTTEST);
  const next = createNext((text) => set("beginning", text));
  const live = createLive();
  const numbers = createFold(
    () => [...next.tables(), curves.table(runs.all)],
    () => digestNotes(run()),
  );
  const root = createWidget(
    "name-lab",
    "A small GPT makes up names",
    createPanes(
      [
        createNote(
          "The training names keep four rules, and nobody tells the model which. Press Train: from names " +
            "alone it learns to make up new ones, letter by letter, here in your browser.",
        ),
        createRules(),
        createControls(training.heads, element("div", {}, training.buttons, training.seed)),
        training.progress,
        live,
        samples.controls,
      ],
      [element("div", { class: "attn-panels attn-half" }, curves.node, samples.node), next.node],
    ),
    numbers.node,
  );
  let state = null; // as readState has it

  /** Ask the model as it is now; a reader who `changed` something doesn't wait for other names. */
  function ask(changed) {
    const asked = mind.model(state);
    next.draw(asked, state);
    samples.draw(asked, state, changed);
    drawNumbers();
  }
  function drawNumbers() {
    numbers.draw(null, { label: "Chances, weights and losses as tables" });
  }

  /** Once the weights of a run have come, as far as it is, ask the model that has them. */
  async function learn(shown) {
    if (shown === null || shown.curve.length === 0) return mind.forget();
    const at = shown.curve.length;
    const weights = await weightsOf(shown);
    const isNews = weights !== null && shown === run() && at === shown.curve.length;
    if (!isNews || mind.knows(weights)) return;
    const isFirst = mind.knows(null);
    mind.learn(weights);
    ask(isFirst);
    if (runs.isOver(shown)) live.textContent = sayLearned(shown, guesses);
  }

  function drawRun() {
    const begun = training.drawRun();
    if (begun !== null && begun !== live.textContent) live.textContent = begun;
    curves.draw(runs.all, run());
    if (runs.isOver(run())) drawNumbers(); // its digest has come
    learn(run());
  }

  function draw() {
    const before = state;
    state = readState(model);
    const isOther = (...traits) => traits.some((name) => state[name] !== before?.[name]);
    if (isOther("numHeads", "seed")) mind.forget();
    training.draw(state);
    drawRun();
    ask(true);
    const isAsked = before !== null && isOther("beginning", "temperature", "topK");
    if (isAsked) live.textContent = sayNext(next.current());
  }

  const unwatch = runs.watch((changed) => {
    if (changed === run() || changed?.state !== "training") drawRun();
  });
  draw();
  el.replaceChildren(root);
  const off = redrawOn(model, TRAITS, draw);
  return () => {
    training.end();
    samples.end();
    unwatch();
    off();
  };
}

export default { render };
