// HeadLab: choose a number of heads, train a model with them, and see what its heads have learned.

import { concord } from "../engine/language.js";
import { heldOutOf } from "../engine/streams.js";
import { startTraining } from "../engine/trainer.js";
import { checkRecipe } from "../engine/training.js";
import { createTraining } from "../lab/controls.js";
import { areDigests, areDigits } from "../lab/digest.js";
import { sharedRuns, watchInSight } from "../lab/runs.js";
import { headsInWords } from "../lab/words.js";
import { element, write } from "../shared/dom.js";
import {
  createControls,
  createLive,
  createNote,
  createPanes,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createChoices, createTabs } from "./choices.js";
import { checkForm, readGiven, sayForm } from "./given.js";
import { renderSmall } from "./small.js";
import { RELATIONS, settingOf, TASKS } from "./tasks.js";
import { createView } from "./view.js";

const CHOICES = ["task", "symbols", "steps", "mlp"]; // which setting is trained
const MODEL = ["num_heads", "seed", "trained", "from_weights", "beside"]; // which models
const OF_TASK = [...CHOICES.slice(1), "num_heads", "seed", "trained"]; // shown again with it
const CHANGES = ["muted", "forbidden", "forbidden_in"]; // of a trained model
const TRAITS = [...CHOICES, ...MODEL, ...CHANGES, "sentence", "head"];

/** Whether a value is counts [shared, models] of pairs, by numbers of heads. */
function isSharing(value) {
  const isRecord = (x) => typeof x === "object" && x !== null;
  const areCounts = (x) => Array.isArray(x) && x.length === 2 && x.every(Number.isInteger);
  const isRow = (row) => isRecord(row) && Object.values(row).every(areCounts);
  return isRecord(value) && Object.values(value).every(isRow);
}

/** The widget's state, checked; `setting` is what it says of the task, as settingOf has it. */
export function readState(model) {
  const read = readerOf(model);
  const isCount = (value) => Number.isInteger(value) && value >= 1;
  const oneOf = (name, offered) =>
    read.read(name, (value) => offered.includes(value), `one of ${offered.join(", ")}`);
  const counts = read.list("counts", isCount, "numbers of heads");
  const symbolCounts = read.list("symbol_counts", isCount, "numbers of symbols");
  const stepCounts = read.list("step_counts", isCount, "numbers of steps");
  const flag = (name) => read.read(name, (value) => typeof value === "boolean", "true or false");
  const digestsNamed = (name) => read.read(name, areDigests, "digits of models by heads and seed");
  const numHeads = oneOf("num_heads", counts);
  const [spec, recipe, recipes] = ["spec", "recipe", "recipes"].map((name) => model.get(name));
  checkForm(spec);
  checkRecipe(recipe);
  for (const name of Object.keys(TASKS)) if (name !== "concord") checkRecipe(recipes?.[name] ?? {});
  const given = readGiven(model, spec);
  const canBeGiven = given !== null && numHeads === spec.blocks[0].num_heads;
  const isConcordAlone = flag("small") || given !== null;
  const state = {
    counts,
    symbolCounts,
    stepCounts,
    numHeads,
    spec,
    recipe,
    recipes,
    ours: read.read("ours", isSharing, "counts of pairs by numbers of heads"),
    given,
    canBeGiven,
    isConcordAlone,
    isGiven: flag("from_weights") && canBeGiven,
    task: oneOf("task", isConcordAlone ? ["concord"] : Object.keys(TASKS)),
    symbols: oneOf("symbols", symbolCounts),
    steps: oneOf("steps", stepCounts),
    mlp: flag("mlp"),
    seed: read.index("seed", 1000),
    trained: flag("trained"),
    digest: read.read("digest", areDigits, "eight hexadecimal digits, or none"),
    digests: digestsNamed("digests"),
    inductionDigests: digestsNamed("induction_digests"),
    heldOut: read.whole("held_out", 10_000),
    sentence: concord.read(read.text("sentence")),
  };
  const isModel = ([heads, seed]) => counts.includes(heads) && seed >= 0 && seed < 1000;
  const isBeside = (value) =>
    value?.length === 0 || (value?.length === 2 && value.every(Number.isInteger) && isModel(value));
  state.beside = read.read("beside", isBeside, "empty, or a number of heads and a seed");
  const setting = settingOf(state);
  return { ...state, setting, ...readHeads(read, setting, counts, numHeads) };
}

/** What is said of single heads, which are counted through the layers. */
function readHeads(read, setting, counts, numHeads) {
  const layers = setting.spec.blocks.length;
  const [most, heads] = [layers * Math.max(...counts), layers * numHeads];
  return {
    head: Math.min(read.index("head", most), heads - 1),
    muted: read.indices("muted", most, "heads").filter((other) => other < heads),
    forbidden: readForbidden(read, setting, most, heads, heads - numHeads),
  };
}

/**
 * The look that is forbidden, {relation, head, from}, or null; `head` is null where it is so in all heads
 * of the last layer, which begin with `from`.
 */
function readForbidden(read, { task }, most, heads, from) {
  const isRelation = (value) => value === "" || RELATIONS.includes(value);
  const relation = read.read("forbidden", isRelation, "a relation, or empty");
  const isHead = (value) => Number.isInteger(value) && value >= 0 && value < most;
  const isWhere = (value) => value === null || isHead(value);
  const where = read.read("forbidden_in", isWhere, `one of 0 to ${most - 1}, or null`);
  if (!task.relations.some(({ name }) => name === relation)) return null;
  const head = where === null ? null : Math.max(from, Math.min(where, heads - 1));
  return { relation, head, from };
}

function render(context) {
  return context.model.get("small") ? renderSmall(context, readState) : renderWhole(context);
}

function renderWhole({ model, el }) {
  const { counts, heldOut, symbolCounts, stepCounts, given, spec, isConcordAlone } =
    readState(model);
  const runs = sharedRuns(model, { heldOut, startTraining });
  const set = setterOf(model);
  const sentences = new Map(); // a setting's key -> the sentence that is shown
  const left = {}; // a task -> what was chosen when another one was opened
  let state = null; // as readState has it
  const views = new Map(); // a setting's key -> its view, kept for when it is chosen again
  let view = null; // of the setting that is chosen

  /** Of another model heads are shown, maybe of more or fewer: what was said of one means nothing there. */
  function forgetHeads(numHeads = state.numHeads) {
    if (numHeads !== state.numHeads) {
      const place = state.head % state.numHeads;
      const layer = (state.head - place) / state.numHeads; // the large map stays in it
      set("head", layer * numHeads + Math.min(place, numHeads - 1));
    }
    set("muted", []);
    set("forbidden_in", null);
  }

  /** Choose another setting. */
  function setChoice(name, value) {
    forgetHeads();
    set("beside", []);
    set(name, value);
  }

  /** Show another task, as it was left or with few heads; by that nothing begins to train. */
  function openTask(name) {
    if (name === state.task) return;
    left[state.task] = Object.fromEntries(OF_TASK.map((trait) => [trait, model.get(trait)]));
    const { trained = false, ...chosen } = left[name] ?? {
      num_heads: TASKS[name].heads ?? counts[0],
    };
    set("trained", false);
    set("forbidden", "");
    set("head", TASKS[name].heads ?? 0); // another task may have fewer layers
    setChoice("task", name);
    for (const [trait, value] of Object.entries(chosen)) set(trait, value);
    set("trained", trained && runs.isReady(run()));
  }

  const tabs = createTabs(openTask);
  tabs.node.hidden = isConcordAlone;
  const choices = createChoices({ symbolCounts, stepCounts }, setChoice);
  const training = createTraining(model, runs, {
    counts,
    sayHeads: (count) => headsInWords(count) + (state.setting.perLayer ?? ""),
    forget: forgetHeads,
  });
  const { run } = training;
  const live = createLive();
  const about = createNote();
  const place = element("div");
  const sentencePlace = element("div");
  const hand = {
    set,
    forgetHeads,
    choose(sentence) {
      if (state.task === "concord") return set("sentence", sentence.words.join(" "));
      sentences.set(state.setting.key, sentence);
      draw();
    },
  };
  const root = createWidget(
    "head-lab",
    "How many heads does a model need?",
    createPanes(
      [
        tabs.node,
        element("div", { class: "attn-about" }, about, choices.node),
        ...(given === null ? [] : [createNote(sayForm(spec))]),
        createControls(
          training.heads,
          element("div", {}, training.buttons, training.seed, training.beginning),
        ),
        training.progress,
        element("div", { class: "attn-sentence-panel" }, sentencePlace, live),
      ],
      [place],
    ),
  );

  /** The sentence that is shown: the same object for the same words. */
  function sentenceOf({ sentence, setting: { name, key, task } }) {
    const known = sentences.get(key);
    const isNew = name === "concord" && known?.words.join(" ") !== sentence.words.join(" ");
    if (isNew || !known) sentences.set(key, isNew ? sentence : heldOutOf(task, 1)[0]);
    return sentences.get(key);
  }

  function viewOf(setting) {
    if (!views.has(setting.key)) {
      views.set(setting.key, createView(setting, { counts, heldOut, runs, run, live, hand }));
    }
    return views.get(setting.key);
  }

  function drawTraining() {
    const begun = training.drawRun();
    if (begun !== null) write(live, begun || "Shown above: the answers that are wanted.");
  }

  function draw() {
    state = readState(model);
    const { setting } = state;
    state.sentence = sentenceOf(state);
    tabs.draw(state.task);
    about.textContent = setting.about;
    choices.draw(state);
    view = viewOf(setting);
    if (place.firstChild !== view.node) {
      place.replaceChildren(view.node);
      sentencePlace.replaceChildren(view.sentence);
    }
    training.draw(state);
    drawTraining();
    view.draw(state);
  }

  const unwatch = watchInSight(runs, root, (changed) => {
    drawTraining();
    view.hear(changed);
  });
  draw();
  el.replaceChildren(root);
  const off = redrawOn(model, TRAITS, draw);
  return () => {
    training.end();
    unwatch();
    off();
  };
}

export default { render };
