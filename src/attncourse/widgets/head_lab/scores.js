// HeadLab's bars: for each relation how many answers are right, and what its best head looks at.

import { nameOfHead } from "../lab/words.js";
import { createBar } from "../shared/bar.js";
import { useHeadColor } from "../shared/color.js";
import { element } from "../shared/dom.js";
import { createHeading, createLegend, createSwatch } from "../shared/parts.js";
import { bestHeads, nameOf } from "./findings.js";

/** Two bars for each row of a setting: right answers, and the best head's weight on the partner. */
export function createScores({ rows: asked, legend: baseline }) {
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
    function draw(evaluation, bests, trained, distances, muted, of) {
      right.draw(evaluation && share(evaluation), chance, trained && share(trained));
      const found = bests?.[name];
      const before = trained && bestHeads(trained.mass)[name]?.mass;
      const mark = before === found?.mass ? null : before;
      weight.draw(found?.mass, distances?.[name]?.share ?? null, mark);
      const isFound = found?.mass > 0; // nobody looks where every head is forbidden to
      head.textContent = isFound ? nameOfHead(found.head, of) : "";
      swatch.hidden = !isFound;
      best.classList.toggle("attn-muted", muted.includes(found?.head));
      if (found) useHeadColor(node, found.head % of.numHeads);
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
  const legend = createLegend(["attn-baseline-key", baseline]);
  const unchanged = element("span");
  const beforeEntry = createLegend(["attn-before-key", unchanged]).firstChild;
  legend.append(beforeEntry);
  const heading = createHeading();
  const node = element("div", {}, heading, titles, ...rows.map((row) => row.node), legend);

  /**
   * `trained` is the evaluation of the model as it was trained, where heads are `muted` now or a look is
   * `forbidden`; `distances` what the best fixed distances get; `of` is the model, and `who` names it
   * where there are two.
   */
  function draw(evaluation, trained, distances, { of, who = "", muted = [], forbidden = null }) {
    heading.textContent = `${who}What it gets right in new examples`;
    const bests = evaluation === null ? null : bestHeads(evaluation.mass);
    for (const row of rows) row.draw(evaluation, bests, trained, distances, muted, of);
    beforeEntry.hidden = trained === null;
    const changes = [muted.length > 0 && "no head muted", forbidden && "no look forbidden"];
    unchanged.textContent = changes.filter(Boolean).join(", ");
  }
  return { node, draw };
}
