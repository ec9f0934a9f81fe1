// HeadLab's trained models: each in a worker of its own, known by its number of heads and its seed.

import { startTraining } from "./engine/trainer.js";

const MOST_AWAKE = 6; // workers that wait to be asked; each keeps a model
const AT_ONCE = 2; // models that train in the background
const EVERY = 10; // steps; then the page is told the losses, and asks where the heads look
const runsOf = new WeakMap(); // a widget's model -> its runs: all its views share them

/** The runs of a widget; the same ones for each of its views. */
export function sharedRuns(model, settings) {
  if (!runsOf.has(model)) runsOf.set(model, createRuns(settings));
  return runsOf.get(model);
}

/**
 * Models that train, or have trained. A run is {numHeads, seed, state, steps, losses, evaluation,
 * seconds, problem}; its `state` is "training", "paused", "done", "stopped" or "failed".
 */
function createRuns({ spec, recipe, heldOut }) {
  const runs = []; // the newest last
  const queue = []; // {numHeads, seed} of models to be trained in the background
  const views = new Set();
  const tell = (run) => views.forEach((hear) => hear(run));
  const isOver = (run) => run?.state === "done" || run?.state === "stopped";

  function find(numHeads, seed) {
    return runs.find((run) => run.numHeads === numHeads && run.seed === seed);
  }
  function drop(run) {
    run.training.close();
    runs.splice(runs.indexOf(run), 1);
  }

  /** Train a model, from the beginning. What a reader has let train before is given up. */
  function start(numHeads, seed) {
    const before = find(numHeads, seed);
    const isGivenUp = (run) => run === before || (!isOver(run) && !run.isBehind);
    for (const run of [...runs]) if (isGivenUp(run)) drop(run);
    const run = train({ numHeads, seed, isBehind: false });
    goOn();
    return run;
  }

  function train(which) {
    const run = { ...which, state: "training", steps: 0, losses: [], evaluation: null };
    const { numHeads, seed } = run;
    runs.push(run);
    const [block] = spec.blocks;
    const blocks = [{ ...block, num_heads: numHeads, num_kv_heads: numHeads }];
    const message = {
      spec: { ...spec, blocks },
      recipe,
      task: { name: "concord", seed, heldOut },
      reports: { losses: EVERY },
    };
    run.training = startTraining(message, {
      losses({ steps, losses }) {
        run.steps = steps;
        run.losses.push(...losses);
        tell(run);
      },
      evaluation({ steps, ...evaluation }) {
        run.evaluation = evaluation;
        run.evaluated = steps;
        tell(run);
      },
      done({ steps, seconds }) {
        Object.assign(run, { steps, seconds, state: steps < recipe.steps ? "stopped" : "done" });
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

  /** Close the oldest workers; what their models reached is still known. */
  function putToSleep() {
    const awake = runs.filter((run) => isOver(run) && !run.isAsleep);
    for (const run of awake.slice(0, -MOST_AWAKE)) {
      run.training.close();
      run.isAsleep = true;
    }
  }

  /** Train models in the background, as many at once as there is room for. */
  function repeat(counts, seeds) {
    queue.length = 0;
    for (let seed = 0; seed < seeds; seed++) {
      for (const numHeads of counts) if (!isDone(numHeads, seed)) queue.push({ numHeads, seed });
    }
    goOn();
  }
  const isDone = (numHeads, seed) => find(numHeads, seed)?.state === "done";
  const behind = () => runs.filter((run) => run.isBehind && run.state === "training");

  function goOn() {
    while (queue.length > 0 && behind().length < AT_ONCE) {
      const { numHeads, seed } = queue.shift();
      const before = find(numHeads, seed);
      if (before?.state === "training" || before?.state === "done") continue;
      if (before) drop(before);
      train({ numHeads, seed, isBehind: true });
    }
  }

  /** Train no more in the background; what hasn't ended there is given up. */
  function stopRepeating() {
    queue.length = 0;
    for (const run of behind()) drop(run);
    views.forEach((hear) => hear(null));
  }

  function pause(run) {
    run.training.pause();
    run.state = "paused";
    run.isBehind = false; // a reader has it in hand
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
    isRepeating: () => queue.length > 0 || behind().length > 0,
    start,
    pause,
    resume,
    stop: (run) => run.training.stop(),
    repeat,
    stopRepeating,
    watch,
  };
}

/**
 * Ask a run about a sentence, again and again, never twice at a time: `show(answer)` is told
 * {run, sentence, muted, logits, weights}.
 */
export function createAsker(show) {
  let isWaiting = false;
  let next = null;

  async function ask(run, sentence, muted) {
    next = { run, sentence, muted };
    if (isWaiting) return;
    isWaiting = true;
    while (next !== null) {
      const asked = next;
      next = null;
      const headMasks = [maskOf(asked.run.numHeads, asked.muted)];
      try {
        const about = { sentences: [asked.sentence], headMasks };
        const [{ logits, weights }] = await asked.run.training.ask("answers", about);
        show({ ...asked, logits, weights: weights[0] });
      } catch {
        // The run is over, or has failed, which it tells by itself.
      }
    }
    isWaiting = false;
  }
  return ask;
}

/** A factor for each head: 0 for the muted ones. */
export function maskOf(numHeads, muted) {
  return Array.from({ length: numHeads }, (_, head) => (muted.includes(head) ? 0 : 1));
}
