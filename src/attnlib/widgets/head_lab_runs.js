// HeadLab's trained models: each in a worker of its own, known by its number of heads and its seed.

import { startTraining } from "./engine/trainer.js";

const MOST_AWAKE = 6; // workers that wait to be asked; each keeps a model
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
  const views = new Set();
  const tell = (run) => views.forEach((hear) => hear(run));
  const isOver = ({ state }) => state === "done" || state === "stopped";

  function find(numHeads, seed) {
    return runs.find((run) => run.numHeads === numHeads && run.seed === seed);
  }
  function drop(run) {
    run.training.close();
    runs.splice(runs.indexOf(run), 1);
  }

  /** Train a model, from the beginning. What still trains is given up. */
  function start(numHeads, seed) {
    const before = find(numHeads, seed);
    for (const run of [...runs]) if (run === before || !isOver(run)) drop(run);
    const run = { numHeads, seed, state: "training", steps: 0, losses: [], evaluation: null };
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
        tell(run);
      },
      error(problem) {
        Object.assign(run, { problem, state: "failed" });
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

  function pause(run) {
    run.training.pause();
    run.state = "paused";
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
      setTimeout(() => views.size === 0 && [...runs].forEach(drop));
    };
  }
  return {
    find,
    start,
    pause,
    resume,
    watch,
    stop: (run) => run.training.stop(),
    isOver,
    all: runs,
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
