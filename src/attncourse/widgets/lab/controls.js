// A training in a reader's hand: the slider, the buttons, and how far a model has come.

import { element } from "../shared/dom.js";
import {
  createButton,
  createButtonGroup,
  createCheckbox,
  createQuietButton,
  createSlider,
} from "../shared/parts.js";
import { setterOf } from "../shared/state.js";
import { digitsOf, sayNamed } from "./digest.js";
import { headsInWords, nameOfRun, sayBegin, sayProgress } from "./words.js";

const SETTLED = 300; // milliseconds; a slider that moves on within them trains nothing

/** What trains, pauses and stops a model; each button is always there, and says what it would do. */
function createButtons({ train, pause, resume, stop, reseed }) {
  let press = train;
  const main = createButton("Train", () => press());
  main.classList.add("attn-main");
  const end = createQuietButton("Stop", stop);
  const seed = createQuietButton("Another seed", reseed);
  function draw(run, next) {
    const [text, action] = {
      training: ["Pause", pause],
      paused: ["Go on", resume],
      given: ["Train", train],
    }[run?.state] ??
      next ?? [run === null ? "Train" : "Train again", train];
    main.textContent = text;
    press = action;
    const canStop = ["training", "paused"].includes(run?.state);
    end.setAttribute("aria-disabled", String(!canStop));
  }
  return { main, others: [end, seed], draw };
}

/** A button for each number of heads, where there are few. */
function createChoice(name, { ticks, choose }) {
  const { node: buttons, draw } = createButtonGroup(name, ticks, choose);
  const title = element("span", { "aria-hidden": "true" }, name);
  return { node: element("div", { class: "attn-row attn-choice" }, title, buttons), draw };
}

/**
 * The controls of a training, for the widget's `model` and its `runs`, with these numbers of heads.
 * `sayHeads` says what stands beside the slider; `forget` is called before another one is chosen. Where
 * the numbers are `few`, each has its button. Once a run is done, the main button may do what `next`
 * says of it: [text, number of heads], or null for training again. It returns nodes, and
 *
 *   buttons, progress    rows of the parts main, others and bar, text, which may stand elsewhere
 *   run()           the run of what is chosen, or null
 *   draw(state)     show what is chosen, and train it once a reader has asked for models
 *   drawRun()       show how far its training is; returns what is newly to be said of it, or null
 *   end()           train nothing any more that has been waited for
 */
export function createTraining(
  model,
  runs,
  { counts, sayHeads = headsInWords, forget = () => {}, few = false, next = () => null },
) {
  const set = setterOf(model);
  let state = null; // {setting, numHeads, seed, trained, digest}, and of HeadLab {isGiven, canBeGiven}
  let named = null; // {which, digits}: the model, as it was, that the state asks for with which it began
  let lastSaid = null; // what was to be said last
  let isAgain = false; // whether a model is trained because the state it began with asks for it
  let settling; // a timer
  const chosen = () => [state.setting, state.numHeads, state.seed, state.isGiven];
  const run = () => runs.find(...chosen()) ?? null;
  const which = () => [state.setting.key, ...chosen().slice(1)].join();

  function choose(numHeads) {
    forget(numHeads);
    set("num_heads", numHeads);
  }
  const heads = (few ? createChoice : createSlider)("Heads", {
    max: counts.length - 1,
    ticks: counts.map(String),
    choose: (position) => choose(counts[position]),
  });
  const buttons = createButtons({
    train() {
      isAgain = false;
      set("trained", true);
      runs.start(...chosen());
    },
    pause: () => runs.pause(run()),
    resume: () => runs.resume(run()),
    stop: () => ["training", "paused"].includes(run()?.state) && runs.stop(run()),
    reseed: () => set("seed", (state.seed + 1) % 1000),
  });
  const beginning = createCheckbox("Begin with your model's own weights", (isWanted) =>
    set("from_weights", isWanted),
  );
  const seed = element("span", { class: "attn-seed" });
  const bar = element("progress", { "aria-label": "Training" });
  const text = element("span", { class: "attn-progress-text" });

  // What nobody sees trains nothing, such as after a reload what lies in a closed fold.
  let isSeen = false;
  const eye = new IntersectionObserver((entries) => {
    isSeen ||= entries.some((entry) => entry.isIntersecting);
    if (!isSeen) return;
    eye.disconnect();
    trainChosen();
  });
  eye.observe(heads.node);

  /** Train what is chosen, if a reader wants that. Given weights are asked as they came. */
  function trainChosen() {
    if (!isSeen) return;
    const shown = run();
    if (shown !== null && !shown.isAsleep) return;
    const isAsked = state.isGiven && (shown ?? { state: "given" }).state === "given";
    if (isAsked) runs.look(...chosen());
    else if (state.trained) runs.start(...chosen());
  }

  function draw(next) {
    const before = state;
    state = next;
    heads.draw(counts.indexOf(state.numHeads), sayHeads(state.numHeads));
    seed.textContent = `seed ${state.seed}`;
    beginning.node.hidden = !state.canBeGiven;
    beginning.draw(state.isGiven);
    isAgain = before === null ? state.trained : isAgain;
    named ??= { which: which(), digits: state.digest };
    runs.show(...chosen());
    if (!state.trained && before?.trained !== false) runs.giveUp();
    clearTimeout(settling);
    const isMoving = before !== null && state.trained === before.trained; // the slider, perhaps
    settling = setTimeout(trainChosen, isMoving ? SETTLED : 0);
  }

  function drawRun() {
    const shown = run();
    const [onward, more] = (shown?.state === "done" && next(shown)) || [];
    buttons.draw(shown, onward && [onward, () => choose(more)]);
    const { steps } = state.setting.recipe;
    bar.max = steps;
    bar.value = shown?.steps ?? 0;
    const wanted = named.which === which() ? named.digits : "";
    text.textContent = sayProgress(shown, steps) + sayNamed(shown, wanted);
    const digits = runs.isOver(shown) ? digitsOf(shown) : wanted;
    if (model.get("digest") !== digits) set("digest", digits);
    const before = lastSaid;
    lastSaid = sayBegin(shown, isAgain, few ? ({ numHeads }) => headsInWords(numHeads) : nameOfRun);
    return lastSaid === before ? null : lastSaid;
  }
  return {
    heads: heads.node,
    buttons: element("div", { class: "attn-row attn-buttons" }, buttons.main, ...buttons.others),
    main: buttons.main,
    others: buttons.others,
    seed,
    beginning: beginning.node,
    progress: element("div", { class: "attn-progress" }, bar, text),
    bar,
    text,
    run,
    draw,
    drawRun,
    end() {
      eye.disconnect();
      clearTimeout(settling);
    },
  };
}
