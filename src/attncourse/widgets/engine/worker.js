// What a worker does: it trains one model, tells the page how that goes and answers its questions.

import { TransformerModel } from "./model.js";
import { should, shouldCount } from "./spec.js";
import { TASKS } from "./tasks.js";
import { numbersFor, Training } from "./training.js";

const TURN = 25; // milliseconds of training; then the page's messages have their turn

/** What the page may ask of a training, at any time; with `headMasks` or `forbidden`, see model.js. */
const QUESTIONS = {
  weights: ({ model }) => model.weights(),
  answers: ({ model }, { sentences, headMasks, forbidden }) =>
    sentences.map((sentence) => model.answer(sentence, { headMasks, forbidden })),
  evaluation: (training, { headMasks, forbidden }) => training.evaluate({ headMasks, forbidden }),
};

/**
 * Serve the page at the other end of `scope`, a worker's `self`. Messages have a `kind`:
 *
 *   start                  see `begin`; told "losses", "evaluation", "maps" and, at the end, "done" with
 *                          the model's digest
 *   pause, resume, stop    a stopped training is done, and its model stays as it is
 *   ask                    `question` with its `id`; told "reply": {id, reply} or {id, error}
 *
 * An error anywhere else ends the training; told "error": {message}.
 */
export function run(scope) {
  let training = null;
  let reports = null; // when and what the page wants to be told
  const losses = []; // that the page hasn't been told yet
  let milliseconds = 0; // spent in steps
  let isRunning = false;
  let isDone = false;
  let isTurnComing = false;
  const { port1: wakePort, port2: turnPort } = new MessageChannel(); // rings after the page's messages

  const tell = (kind, content) => scope.postMessage({ kind, ...content });

  const handlers = {
    start(message) {
      [training, reports] = begin(message);
      if (message.isAsIs) return finish();
      report();
      handlers.resume();
    },
    pause() {
      isRunning = false;
    },
    resume() {
      if (training === null || isDone) return;
      isRunning = true;
      askForTurn();
    },
    stop() {
      if (training !== null && !isDone) finish();
    },
    ask({ id, question, ...about }) {
      try {
        should(training !== null, "a training", "started before it is asked", training);
        shouldBeOneOf(question, QUESTIONS, "a question");
        tell("reply", { id, reply: QUESTIONS[question](training, about) });
      } catch (error) {
        tell("reply", { id, error: error.message });
      }
    },
  };

  function askForTurn() {
    if (!isTurnComing) wakePort.postMessage(null);
    isTurnComing = true;
  }

  /** Train for a while, then let the messages be read that came meanwhile. */
  function takeTurn() {
    isTurnComing = false;
    const end = performance.now() + TURN;
    while (isRunning && performance.now() < end) {
      const start = performance.now();
      losses.push(training.step());
      milliseconds += performance.now() - start;
      if (training.isDone) return finish();
      report();
    }
    if (isRunning) askForTurn();
  }

  /** Tell what is due after so many steps, or all of it. */
  function report(isLast = false) {
    const { steps, model, task } = training;
    const isDue = (every) => isLast || steps % every === 0;
    const { shown } = reports;
    if (isDue(reports.losses) && losses.length > 0) {
      tell("losses", { steps, losses: losses.splice(0) });
    }
    if (isDue(reports.evaluation) && task.heldOut.length > 0) {
      tell("evaluation", { steps, ...training.evaluate() });
    }
    if (isDue(reports.maps) && shown !== null) tell("maps", { steps, ...model.answer(shown) });
  }

  function finish() {
    [isRunning, isDone] = [false, true];
    report(true);
    const { steps } = training;
    tell("done", { steps, seconds: milliseconds / 1000, digest: training.digest() });
  }

  /** Handle an event; tell the page, in words, what that throws. */
  const guarded = (handle) => (event) => {
    try {
      handle(event);
    } catch (error) {
      [isRunning, isDone] = [false, true];
      tell("error", { message: error.message });
    }
  };
  turnPort.onmessage = guarded(takeTurn);
  scope.onmessage = guarded(({ data }) => handlers[data.kind](data));
}

/**
 * Begin a training: returns it, and which reports are wanted of it.
 *
 * `task` is {name, ...} for one of TASKS, `recipe` as training.js has it; `weights` may be left out where
 * the task can draw some; a model that `isAsIs` is only asked, and not trained. `reports` come each
 * time after so many steps: `losses`; `evaluation` on the sentences held out, if any; `maps`, what
 * the model says of the sentence `shown`, if any.
 */
function begin({ spec, recipe, task, weights = null, reports }) {
  shouldBeOneOf(task.name, TASKS, "the task's name");
  const wanted = { losses: 10, evaluation: 25, maps: 25, shown: null, ...reports };
  for (const name of ["losses", "evaluation", "maps"]) shouldCount(wanted[name], `reports.${name}`);
  const model = new TransformerModel(spec, { Numbers: numbersFor(recipe) });
  const { rng, ...source } = TASKS[task.name](task);
  if (weights === null && rng !== undefined) model.draw(rng, recipe.model);
  else model.load(weights ?? {});
  return [new Training(model, source, recipe), wanted];
}

function shouldBeOneOf(value, record, name) {
  should(Object.hasOwn(record, value), name, Object.keys(record).join(" or "), value);
}
