// HeadLab's bars: for each relation how many answers are right, and what its best head looks at.

import { createBar } from "../shared/bar.js";
import { useHeadColor } from "../shared/color.js";
import { element } from "../shared/dom.js";
import { createHeading, createLegend, createSwatch } from "../shared/parts.js";
import { bestHeads, nameOf } from "./findings.js";

/**
 * Two bars for what is asked: answers that are right, and the best head's weight on the true partner.
 * `asked` are the rows of a setting.
 */
export function createScores({ rows: asked, legend: dumb }) {
  const rows = asked.map(({ name, chance, share }) => {
    const right = createBar("attn-right");
    const weight = createBar("attn-weight");
    const swatch = createSwatch(null);
    const head = element("span", { class: "attn-best" });
    const best = element("span", { class: "attn-best-head" }, swatch, head);
    const title = element("span", { class: "attn-relation" }, nameOf(name));
    const isFound = name !== "both"; // which has no partner of its own
    const bars = isFound ? [...right.nodes, best, ...weight.nodes] : right.nodes;
    const node = element("div", { class: "attn-score" }, title, ...bars);
    function draw(evaluation, bests, unmuted, distances) {
      right.draw(evaluation && share(evaluation), chance, unmuted && share(unmuted));
      const found = bests?.[name];
      weight.draw(found?.mass, distances?.[name]?.share ?? null);
      head.textContent = found ? String(found.head + 1) : "";
      swatch.hidden = !found;
      if (found) useHeadColor(node, found.head);
    }
    return { node, draw };
  });
  const titles = element(
    "div",
    { class: "attn-score attn-score-titles" },
    element("span", {}, "who looks → for whom"),
    element("span", {}, "right answers"),
    element("span", {}, "its best head"),
    element("span", {}, "weight on the partner"),
  );
  const legend = createLegend(["attn-dumb-key", dumb]);
  const beforeEntry = createLegend(["attn-before-key", "no head muted"]).firstChild;
  legend.append(beforeEntry);
  const heading = createHeading();
  const node = element("div", {}, heading, titles, ...rows.map((row) => row.node), legend);

  /**
   * `unmuted` is the evaluation with all heads, where some are muted now; `distances` what the best
   * fixed distances get; `who` names the model where there are two.
   */
  function draw(evaluation, unmuted, distances, who = "") {
    heading.textContent = `${who}What it gets right, in sentences it never saw`;
    const bests = evaluation === null ? null : bestHeads(evaluation.mass);
    for (const row of rows) row.draw(evaluation, bests, unmuted, distances);
    beforeEntry.hidden = unmuted === null;
  }
  return { node, draw };
}
