// HeadLab's finished models, each with what it gets right; pressed, one is shown again.

import { headsInWords } from "./head_lab_curve.js";
import { nameOf } from "./head_lab_findings.js";
import { element } from "./shared/dom.js";
import { shortNumber } from "./shared/numbers.js";
import { createButton, createHeading } from "./shared/parts.js";

/** A row for each model, with its share of right answers in some relations. */
export function createKept(relations, choose) {
  const titles = ["model", ...relations.map(nameOf), "loss"];
  const head = titles.map((text) => element("th", { scope: "col" }, text));
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), body);
  const scroll = element("div", { class: "attn-scroll" }, table);
  const node = element("div", { class: "attn-kept" }, createHeading("Your models so far"), scroll);
  const rows = new Map(); // run -> {node, button}

  function createRow(run) {
    const { numHeads, seed, evaluation } = run;
    const button = createButton(`${headsInWords(numHeads)}, seed ${seed}`, () => choose(run));
    const shares = relations.map((relation) => evaluation.relations[relation]);
    const numbers = shares.map((share) => (share === undefined ? "–" : shortNumber(share)));
    const cells = [...numbers, evaluation.loss.toFixed(3)];
    const name = element("th", { scope: "row" }, button);
    return {
      button,
      node: element("tr", {}, name, ...cells.map((cell) => element("td", {}, cell))),
    };
  }

  /** Rows that stay are left where they are, with the focus. */
  function draw(runs, shown) {
    node.hidden = runs.length === 0;
    for (const [run, row] of rows) {
      if (runs.includes(run)) continue;
      row.node.remove();
      rows.delete(run);
    }
    runs.forEach((run, i) => {
      if (!rows.has(run)) rows.set(run, createRow(run));
      const row = rows.get(run);
      const there = body.children[i] ?? null;
      if (there !== row.node) body.insertBefore(row.node, there);
      row.button.setAttribute("aria-pressed", String(run === shown));
    });
  }
  return { node, draw };
}
