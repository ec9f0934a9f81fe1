// QueryCompass's goals: words that a reader is to give the largest weight, and which of them were.

import { element, write } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";

/** A chip for each goal, with its weight; once reached it stays so. */
export function createGoals(goals, names, enough) {
  const wanted = enough > 0 ? `a weight above ${shortNumber(enough)}` : "the largest weight";
  const chips = goals.map((goal) => {
    const [mark, weight] = [element("span"), element("span", { class: "attn-goal-weight" })];
    const name = element("bdi", {}, names[goal]);
    const node = element("span", { class: "attn-goal", role: "listitem" }, mark, name, weight);
    return { goal, node, mark, weight, isReached: false };
  });
  const list = element("span", { class: "attn-row", role: "list" });
  list.append(...chips.map(({ node }) => node));
  const node = element("div", { class: "attn-goals" }, `Goal: ${wanted}`, list);
  node.hidden = goals.length === 0;

  /** Draw the weights; return the names of what this move has reached. */
  function draw(weights) {
    const largest = Math.max(...weights);
    const found = [];
    for (const chip of chips) {
      const weight = weights[chip.goal];
      const isThere = weight > enough && weights.every((w, j) => j === chip.goal || w < largest);
      if (isThere && !chip.isReached) found.push(names[chip.goal]);
      chip.isReached ||= isThere;
      write(chip.mark, chip.isReached ? "✓" : "○");
      chip.mark.ariaLabel = chip.isReached ? "reached" : "not reached";
      chip.mark.role = "img";
      chip.node.classList.toggle("attn-reached", chip.isReached);
      write(chip.weight, shortNumber(weight));
    }
    return found;
  }
  return { node, draw };
}
