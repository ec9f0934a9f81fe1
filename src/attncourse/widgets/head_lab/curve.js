// HeadLab's loss, on a scale on which each line is half of the one above or less.

import { headsInWords } from "../lab/words.js";
import { createCurves } from "../shared/curve.js";

const TICKS = [2, 1, 0.5, 0.2, 0.1, 0.05, 0.02];
const HIGHEST = 3;
const MEAN_OF = 10; // steps; the loss of a single batch jumps

/** Mean losses of ten steps each, at their middles. */
function smoothed(losses) {
  const count = Math.floor(losses.length / MEAN_OF);
  return Array.from({ length: count }, (_, i) => {
    const own = losses.slice(i * MEAN_OF, (i + 1) * MEAN_OF);
    return [(i + 0.5) * MEAN_OF, own.reduce((a, b) => a + b) / MEAN_OF];
  });
}

/** The curves of trainings of so many steps; nothing is drawn lower than the loss `lowest`. */
export function createLossCurves(steps, lowest = 0.015) {
  const depthOf = (loss) => {
    const share = Math.log(HIGHEST / loss) / Math.log(HIGHEST / lowest);
    return Math.max(0, Math.min(1, share));
  };
  return createCurves({
    steps,
    heading: "Loss: how far the answers are from right",
    nameOf: ({ numHeads }) => headsInWords(numHeads),
    seriesOf: (run) => run.losses,
    pointsOf: smoothed,
    depthOf,
    ticks: TICKS.filter((tick) => tick >= lowest),
  });
}
