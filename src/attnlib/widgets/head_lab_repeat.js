// HeadLab's many models: what each got right, as dots, and how often two relations share a head.

import { headsInWords } from "./head_lab_curve.js";
import { bestHeads, CHANCE, nameOf, needsOfOneWord } from "./head_lab_findings.js";
import { element } from "./shared/dom.js";
import { createButton, createHeading, createNote } from "./shared/parts.js";
import { createTable } from "./shared/tables.js";

const DRAWN = ["verb>subject", "verb>object", "their>owner", "their>thing"];
// Pairs that different words need, to be held against those that one word needs.
const OTHER_PAIRS = [
  ["verb>object", "their>thing"],
  ["determiner>noun", "adjective>noun"],
  ["verb>subject", "their>owner"],
];

/** In how many models two relations have the same best head: {shared, models}. */
export function countSharing(runs, [a, b]) {
  const both = runs.map(({ evaluation }) => bestHeads(evaluation.mass));
  const shared = both.filter((bests) => bests[a]?.head === bests[b]?.head);
  return { shared: shared.length, models: runs.length };
}

/** One relation's right answers: a column for each number of heads, a dot for each seed. */
function createPlot(relation, counts) {
  const columns = counts.map(() => element("div", { class: "attn-dot-column" }));
  const guess = element("span", { class: "attn-guess" });
  guess.style.bottom = `${100 * CHANCE}%`;
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
        dot.style.bottom = `${100 * run.evaluation.relations[relation]}%`;
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

/** How often relations share their best head, in models of each number of heads but one. */
function sharingTable(runs, counts, relations) {
  const several = counts.filter((count) => count > 1);
  const rowOf = (pair) => {
    const cells = several.map((count) => {
      const own = runs.filter(({ numHeads }) => numHeads === count);
      const { shared, models } = countSharing(own, pair);
      return models === 0 ? "–" : `${shared} of ${models}`;
    });
    return [pair.map(nameOf).join(", "), ...cells];
  };
  const columns = ["the two relations", ...several.map(headsInWords)];
  const tables = [
    [
      "Needed by the same word: how many of your models find both with one head",
      needsOfOneWord(relations),
    ],
    ["Needed by different words: how many of your models find both with one head", OTHER_PAIRS],
  ];
  return tables.map(([caption, pairs]) => createTable(caption, columns, pairs.map(rowOf)));
}

/** All finished models together; `start` and `stop` train one of each kind in the background. */
export function createRepeat(counts, relations, seeds, { start, stop }) {
  const plots = DRAWN.map((relation) => createPlot(relation, counts));
  const tables = element("div", { class: "attn-scroll", tabindex: 0, role: "group" });
  tables.setAttribute("aria-label", "How often relations share a head");
  let press = start;
  const button = createButton("", () => press());
  const status = element("span", { class: "attn-repeated" });
  const found = element(
    "div",
    {},
    element("div", { class: "attn-dot-plots" }, ...plots.map(({ node }) => node)),
    tables,
  );
  const all = counts.length * seeds;
  const node = element(
    "div",
    { class: "attn-repeat" },
    createHeading("Is it so every time?"),
    createNote(
      `One model proves little. Repeat it with all numbers of heads and ${seeds} seeds each: the ` +
        "models train in the background, and a dot appears for each.",
    ),
    element("div", { class: "attn-row attn-buttons" }, button, status),
    found,
  );

  /**
   * `repeated` is how many of the models to be repeated are there, `isRepeating` whether more come,
   * `problem` why none can.
   */
  function draw(runs, shown, { repeated, isRepeating, problem }) {
    const isWhole = repeated === all;
    button.textContent = isRepeating ? "Stop repeating" : `Repeat it: train ${all} models`;
    button.hidden = isWhole;
    press = isRepeating ? stop : start;
    const count = repeated > 0 || isRepeating ? `${repeated} of ${all} models are trained.` : "";
    status.textContent = problem || count;
    found.hidden = runs.length === 0;
    for (const plot of plots) plot.draw(runs, shown);
    tables.replaceChildren(...sharingTable(runs, counts, relations));
  }
  return { node, draw };
}
