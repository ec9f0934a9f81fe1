// NameLab's loss on names that are held out, beside what worse and better guesses cost.

import { headsInWords, nameOfRun } from "../lab/words.js";
import { createCurves } from "../shared/curve.js";
import { roundTicks, wholeText } from "../shared/numbers.js";
import { createTable } from "../shared/tables.js";

const ROOM = 0.25; // nats above the worst guess and below the best

export function createHeldOutCurves(steps, guesses) {
  const losses = Object.values(guesses);
  const [low, high] = [Math.min(...losses) - ROOM, Math.max(...losses) + ROOM];
  const marks = Object.entries(guesses).map(([name, loss]) => ({ name, loss }));
  const { node, draw } = createCurves({
    steps,
    heading: "Loss on names it never saw, in nats per token",
    nameOf: ({ numHeads }) => headsInWords(numHeads),
    seriesOf: (run) => run.curve,
    pointsOf: (curve) => curve,
    depthOf: (loss) => Math.max(0, Math.min(1, (high - loss) / (high - low))),
    ticks: roundTicks(low, high, 5),
    marks,
  });

  /** What the models have reached, and what guesses cost. */
  function table(runs) {
    const guessed = marks.map(({ name, loss }) => [name, "–", loss.toFixed(3)]);
    const reached = runs.filter(({ curve }) => curve.length > 0);
    const rows = reached.map((run) => {
      const [step, loss] = run.curve.at(-1);
      return [nameOfRun(run), wholeText(step), loss.toFixed(3)];
    });
    return createTable("Loss on names held out", ["", "steps", "loss"], [...guessed, ...rows]);
  }
  return { node, draw, table };
}
