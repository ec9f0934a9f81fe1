// A reader's trained models: each in a worker of its own, known by its setting, its number of heads and
// its seed.

import { whenIdle } from "../shared/idle.js";
import { createSight } from "../shared/sight.js";

const MOST_AWAKE = 6; // workers that wait to be asked; each keeps a model
const AT_ONCE = 2; // models that train in the background
const EVERY = 10; // steps; then the page is told the losses, and asks where the heads look
const PAUSE = 150; // milliseconds from one drawing of a training to the next, at least
const runsOf = new WeakMap(); // a widget's model -> its runs: all its views share them

/**
 * The runs of a widget; the same ones for each of its views. `startTraining` is that of an engine's
 * trainer, `heldOut` says how many sentences models are evaluated on.
 */
export function sharedRuns(model, settings) {
  if (!runsOf.has(model)) runsOf.set(model, createRuns(settings));
  return runsOf.get(model);
}

/**
 * Models that train, or have trained. A run is {setting, numHeads, seed, isGiven, state, steps,
 * losses, evaluation, curve, seconds, digest, problem}; its `state` is "training", "paused", "done", "stopped"
 * or "failed", and its `curve` has [step, loss] of each evaluation. A setting has at least {key, name,
 * options, spec, recipe, given}, and may say how
 * many `evaluations` its trainings have. A run that `isGiven` began with the weights that
 * the setting was `given`; as long as these are asked as they came, its state is "given".
 */
function createRuns({ heldOut, startTraining }) {
  const runs = []; // the newest last
  const queue = []; // {setting, numHeads, seed} of models to be trained in the background
  let shown = []; // what a reader looks at, as `find` wants it
  const views = new Set();
  const tell = (run) => views.forEach((hear) => hear(run));
  const going = new Set(); // runs that have trained on since the views were told
  let isPausing = false;

  /** Tell how far a run has come; of a training when there is time for it: a reader comes first. */
  function report(run) {
    if (run.state !== "training") return tell(run);
    going.add(run);
    if (isPausing) return;
    isPausing = true;
    setTimeout(() => whenIdle(tellGoing, { within: PAUSE }), PAUSE);
  }
  function tellGoing() {
    isPausing = false;
    const changed = [...going].filter((run) => runs.includes(run));
    going.clear();
    changed.forEach(tell);
  }
  const isOver = (run) => ["done", "stopped", "given"].includes(run?.state);
  const isReady = (run) => isOver(run) && !run.isAsleep; // to be asked

  function find(setting, numHeads, seed, isGiven = false) {
    const isIt = (run) => run.numHeads === numHeads && run.seed === seed && run.isGiven === isGiven;
    return runs.find((run) => run.setting.key === setting.key && isIt(run));
  }
  const isShown = (run) => run === find(...shown);
  function drop(run) {
    run.training.close();
    runs.splice(runs.indexOf(run), 1);
  }

  /** Give up what a reader has let train, and a run `before`. */
  function giveUp(before) {
    const isGivenUp = (run) => run === before || (!isOver(run) && !run.isInBackground);
    for (const run of runs.filter(isGivenUp)) drop(run);
  }

  /** Train a model, from the beginning. */
  function start(setting, numHeads, seed, isGiven = false) {
    giveUp(find(setting, numHeads, seed, isGiven));
    const run = train({ setting, numHeads, seed, isGiven, isInBackground: false });
    goOn();
    return run;
  }

  /** Evaluate the given weights without training them. */
  function look(setting, numHeads, seed) {
    const before = find(setting, numHeads, seed, true);
    if (before) drop(before);
    return train({ setting, numHeads, seed, isGiven: true, state: "given" });
  }

  function train(which) {
    const run = { state: "training", steps: 0, losses: [], curve: [], evaluation: null, ...which };
    const { numHeads, seed, isGiven } = run;
    const { name, options, spec, recipe, given, evaluations = 40 } = run.setting;
    runs.push(run);
    const message = {
      spec: specWith(spec, numHeads),
      recipe,
      weights: isGiven ? given : null,
      isAsIs: run.state === "given",
      task: { name, options, seed, heldOut: recipe.held_out, evaluated: heldOut },
      reports: { losses: EVERY, evaluation: Math.max(25, Math.round(recipe.steps / evaluations)) },
    };
    run.training = startTraining(message, {
      losses({ steps, losses }) {
        run.steps = steps;
        run.losses.push(...losses);
        report(run);
      },
      evaluation({ steps, ...evaluation }) {
        run.evaluation = evaluation;
        run.curve.push([steps, evaluation.loss]);
        report(run);
      },
      done({ steps, seconds, digest }) {
        Object.assign(run, { steps, seconds, digest });
        if (run.state !== "given") run.state = steps < recipe.steps ? "stopped" : "done";
        putToSleep();
        goOn();
        tell(run);
      },
      error(problem) {
        Object.assign(run, { problem, state: "failed" });
        queue.length = 0;
        tell(run);
      },
    });
    tell(run);
    return run;
  }

  /** Close the oldest workers but the one shown; what their models reached is still known. */
  function putToSleep() {
    const canSleep = (run) => isReady(run) && !run.isKept && !isShown(run);
    for (const run of runs.filter(canSleep).slice(0, 1 - MOST_AWAKE)) {
      run.training.close();
      run.isAsleep = true;
    }
  }

  /** Train models in the background, as many at once as there is room for. */
  function repeat(setting, counts, seeds) {
    for (let seed = 0; seed < seeds; seed++) {
      for (const numHeads of counts) queue.push({ setting, numHeads, seed });
    }
    goOn();
  }
  const inBackground = () => runs.filter((run) => run.isInBackground && run.state === "training");

  /** What trains, or waits to train, because a setting is repeated. */
  function repeated({ key }) {
    const all = [...queue, ...inBackground().filter((run) => !run.isKept)];
    return all.filter((one) => one.setting.key === key);
  }

  /** Have a model that can be asked, and that stays so; it is trained in the background if need be. */
  function keep(setting, numHeads, seed) {
    const before = find(setting, numHeads, seed);
    for (const run of runs) run.isKept = run === before;
    if (before && !before.isAsleep) return;
    if (before) drop(before);
    train({ setting, numHeads, seed, isGiven: false, isInBackground: true, isKept: true });
  }

  function goOn() {
    while (queue.length > 0 && inBackground().length < AT_ONCE) {
      const { setting, numHeads, seed } = queue.shift();
      const before = find(setting, numHeads, seed);
      if (before && before.state !== "failed") continue;
      if (before) drop(before);
      train({ setting, numHeads, seed, isGiven: false, isInBackground: true });
    }
  }

  /** Repeat a setting no more; of what hasn't ended only the run that is shown goes on. */
  function stopRepeating(setting) {
    for (const one of repeated(setting)) {
      if (queue.includes(one)) queue.splice(queue.indexOf(one), 1);
      else if (isShown(one)) one.isInBackground = false;
      else drop(one);
    }
    goOn();
    tell(null);
  }

  function pause(run) {
    run.training.pause();
    run.state = "paused";
    run.isInBackground = false; // a reader has it in hand
    goOn();
    tell(run);
  }
  function resume(run) {
    run.training.resume();
    run.state = "training";
    tell(run);
  }

  /** Have a view hear of all runs; returns how to stop. Without any view nothing goes on. */
  function watch(hear) {
    views.add(hear);
    return () => {
      views.delete(hear);
      // A view that is drawn anew goes and comes in one task.
      setTimeout(() => {
        if (views.size > 0) return;
        queue.length = 0;
        [...runs].forEach(drop);
      });
    };
  }
  return {
    all: runs,
    find,
    isOver,
    isReady,
    isRepeating: (setting) => repeated(setting).length > 0,
    show(...which) {
      shown = which;
    },
    start,
    giveUp,
    look,
    pause,
    resume,
    stop: (run) => run.training.stop(),
    repeat,
    keep,
    stopRepeating,
    watch,
  };
}

/** Have a drawing hear of all runs; of how far a training is, while the drawing is in the window. */
export function watchInSight(runs, node, hear) {
  const missed = new Set();
  const isUnderWay = (run) => run?.state === "training" && run.steps > 0;
  const sight = createSight(node, () => {
    const heard = [...missed];
    missed.clear();
    heard.forEach(hear);
  });
  const unwatch = runs.watch((run) => {
    if (sight.isSeen() || !isUnderWay(run)) hear(run);
    else missed.add(run);
  });
  return () => {
    sight.end();
    unwatch();
  };
}

/** What a model is with another number of heads; as many as before share their keys and values. */
export function specWith(spec, numHeads) {
  const blocks = spec.blocks.map((block) => {
    const hOfKeys = (numHeads * block.num_kv_heads) / block.num_heads;
    return { ...block, num_heads: numHeads, num_kv_heads: hOfKeys };
  });
  return { ...spec, blocks };
}

/**
 * Ask a run about a sentence, again and again, never twice at a time: `show(answer)` is told
 * {run, sentence, change, logits, weights}; `weights` are the layers' [h, T, T], one after the other.
 * `change` is what is changed of the model, {muted, forbidden}, or nothing.
 */
export function createAsker(show) {
  let isWaiting = false;
  let next = null;

  async function ask(run, sentence, change = {}) {
    next = { run, sentence, change };
    if (isWaiting) return;
    isWaiting = true;
    while (next !== null) {
      const asked = next;
      next = null;
      const about = { sentences: [asked.sentence], ...optionsOf(asked.run, asked.change) };
      try {
        const [{ logits, weights }] = await asked.run.training.ask("answers", about);
        show({ ...asked, logits, weights: joined(weights) });
      } catch {
        // The run is over, or has failed, which it tells by itself.
      }
    }
    isWaiting = false;
  }
  return ask;
}

function joined(layers) {
  const all = new Float64Array(layers.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const layer of layers) {
    all.set(layer, at);
    at += layer.length;
  }
  return all;
}

/**
 * What a worker is told of a change: of `muted` heads, counted through the layers, and of a `forbidden`
 * look, {relation, head}, which is so in the last layer.
 */
export function optionsOf({ numHeads, setting }, { muted = [], forbidden = null }) {
  const headMasks = setting.spec.blocks.map((_, layer) =>
    Array.from({ length: numHeads }, (_, i) => (muted.includes(layer * numHeads + i) ? 0 : 1)),
  );
  if (forbidden === null) return { headMasks, forbidden };
  const { relation, head } = forbidden;
  const layer = headMasks.length - 1;
  const own = head === null ? null : head - layer * numHeads;
  return { headMasks, forbidden: { relation, head: own, layer } };
}
