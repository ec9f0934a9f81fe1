// HeadLab's finished models, each with what it gets right.

import { nameOfRun } from "../lab/words.js";
import { element, reachWhileScrolling } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createButton, createCheckbox, createHeading, createNote } from "../shared/parts.js";
import { nameOf } from "./findings.js";
import { rowsNamed } from "./tasks.js";

/**
 * A row for each model of a setting's task, with its share of right answers in some relations.
 * `choose(run)` shows one; `keep(run)` has it beside others, `keep(null)` none.
 */
export function createKept(setting, { choose, keep }) {
  const asked = rowsNamed(setting, setting.listed);
  const titles = ["model", ...asked.map(({ name }) => nameOf(name)), "loss", "beside"];
  const head = titles.map((text) => element("th", { scope: "col" }, text));
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), body);
  const scroll = element("div", { class: "attn-scroll" }, table);
  reachWhileScrolling(scroll, "Your models so far"); // it may be empty
  const title = "Your models so far";
  const node = element(
    "div",
    { class: "attn-kept" },
    createHeading(title),
    createNote("Press one to see it again. Tick another to compare."),
    scroll,
  );
  const rows = new Map(); // run -> {node, button, tick}

  function createRow(run) {
    const { evaluation } = run;
    const button = createButton(nameOfRun(run), () => choose(run));
    const shares = asked.map(({ share }) => share(evaluation));
    const numbers = shares.map((share) => (share === undefined ? "–" : shortNumber(share)));
    const cells = [...numbers, evaluation.loss.toFixed(3)];
    const name = element("th", { scope: "row" }, button);
    const tick = createCheckbox([], (isTicked) => keep(isTicked ? run : null));
    tick.node.firstChild.setAttribute("aria-label", `${nameOfRun(run)}: keep beside`);
    // Models of other settings are asked other questions.
    tick.node.hidden = run.setting.key !== setting.key || run.isGiven;
    const line = [
      name,
      ...cells.map((cell) => element("td", {}, cell)),
      element("td", {}, tick.node),
    ];
    return { button, tick, node: element("tr", {}, ...line) };
  }

  /** Rows that stay are left where they are, with the focus. */
  function draw(runs, shown, beside) {
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
      row.tick.draw(run === beside);
    });
  }
  return { title, node, draw };
}
