// HeadLab's many models: what each got right, as dots, and how often two relations share a head.

import { headsInWords } from "../lab/words.js";
import { element } from "../shared/dom.js";
import { createButton, createHeading, createLegend, createNote } from "../shared/parts.js";
import { createTable } from "../shared/tables.js";
import { bestHeads, hasLearned, nameOf } from "./findings.js";
import { rowsNamed } from "./tasks.js";

/** In how many models that learned two relations these have the same best head: {shared, models}. */
export function countSharing(runs, pair) {
  const isLearned = ({ evaluation }) => pair.every((name) => hasLearned(evaluation, name));
  const both = runs.filter(isLearned).map(({ evaluation }) => bestHeads(evaluation.mass));
  const shared = both.filter((bests) => bests[pair[0]].head === bests[pair[1]].head);
  return { shared: shared.length, models: both.length };
}

/** One relation's right answers: a column for each number of heads, a dot for each seed. */
function createPlot({ name: relation, chance, share }, counts) {
  const columns = counts.map(() => element("div", { class: "attn-dot-column" }));
  const guess = element("span", { class: "attn-guess" });
  guess.style.bottom = `${100 * chance}%`;
  const field = element("div", { class: "attn-dot-field" }, guess, ...columns);
  const names = counts.map((count) => element("span", {}, String(count)));
  const axis = element("div", { class: "attn-dot-axis", "aria-hidden": "true" }, ...names);
  const node = element(
    "div",
    { class: "attn-dot-plot", role: "img" },
    nameOf(relation),
    field,
    axis,
  );

  function draw(runs, shown) {
    columns.forEach((column, i) => {
      const own = runs.filter(({ numHeads }) => numHeads === counts[i]);
      const dots = own.map((run, at) => {
        const dot = element("span", { class: "attn-run-dot" });
        dot.classList.toggle("attn-current", run === shown);
        dot.style.bottom = `${100 * share(run.evaluation)}%`;
        dot.style.left = `${(100 * (at + 1)) / (own.length + 1)}%`;
        return dot;
      });
      column.replaceChildren(...dots);
    });
    const label = `Right answers of ${nameOf(relation)} by number of heads, a dot for each model`;
    node.setAttribute("aria-label", label);
  }
  return { node, draw };
}

/** How often relations share their best head, by number of heads; in parentheses, in ours. */
function sharingTable(runs, counts, { pairs: ofOneWord, otherPairs, ours }) {
  const several = counts.filter((count) => count > 1);
  const rowOf = (pair) => {
    const cells = several.map((count) => {
      const own = runs.filter(({ numHeads }) => numHeads === count);
      const { shared, models } = countSharing(own, pair);
      const found = models === 0 ? "–" : `${shared} of ${models}`;
      const known = ours?.[headsInWords(count)]?.[pair.join(" & ")];
      return known ? `${found} (${known.join(" of ")})` : found;
    });
    return [pair.map(nameOf).join(", "), ...cells];
  };
  const columns = ["the two relations", ...several.map(headsInWords)];
  const tables = [
    ["Needed by the same word", ofOneWord],
    ["Needed by different words", otherPairs],
  ].filter(([, pairs]) => pairs.length > 0);
  return tables.map(([caption, pairs]) => createTable(caption, columns, pairs.map(rowOf)));
}

/** All finished models of a setting; `start` and `stop` train one of each kind in the background. */
export function createRepeat(setting, counts, seeds, { start, stop }) {
  const plots = rowsNamed(setting, setting.drawn).map((row) => createPlot(row, counts));
  const tables = element("div", { class: "attn-scroll", tabindex: 0, role: "group" });
  tables.setAttribute("aria-label", "How often relations share a head");
  const question = createNote(
    `Of your models${setting.ours ? " (and of ours)" : ""} that learned two relations, how many find ` +
      "both with one head? Where each gets more than half of a row, one head can't: a row sums to 1.",
  );
  question.hidden = setting.pairs.length === 0;
  let press = start;
  const button = createButton("", () => press());
  const status = element("span", { class: "attn-repeated" });
  const found = element(
    "div",
    {},
    element("div", { class: "attn-dot-plots" }, ...plots.map(({ node }) => node)),
    createLegend(
      ["attn-dot-key", "a model: its share of right answers (0 to 1), by number of heads"],
      ["attn-dot-key attn-current", "the one shown above"],
      ["attn-baseline-key", "what guessing gets"],
    ),
    question,
    tables,
  );
  let isOpen = false; // from the first repetition on
  const all = counts.length * seeds;
  const title = "Do other seeds learn the same?";
  const node = element(
    "div",
    { class: "attn-repeat" },
    createHeading(title),
    createNote(
      `One model proves little. Repeat it with all numbers of heads and ${seeds} seeds each: the ` +
        "models train in the background, and a dot appears for each.",
    ),
    element("div", { class: "attn-row attn-buttons" }, button, status),
    found,
  );

  /** `over` are models that are done or were stopped; `problem` says why no more can come. */
  function draw(over, shown, { isRepeating, problem }) {
    const runs = over.filter(({ state }) => state === "done");
    const countOf = (some) => some.filter(({ seed }) => seed < seeds).length;
    const repeated = countOf(runs);
    button.textContent = isRepeating ? "Stop repeating" : `Repeat it: train ${all} models`;
    button.hidden = countOf(over) === all;
    press = isRepeating ? stop : start;
    isOpen ||= isRepeating || button.hidden;
    found.hidden = !isOpen;
    status.textContent = problem || (isOpen ? `${repeated} of ${all} models are trained.` : "");
    for (const plot of plots) plot.draw(runs, shown);
    tables.replaceChildren(...sharingTable(runs, counts, setting));
  }
  return { title, node, draw };
}
