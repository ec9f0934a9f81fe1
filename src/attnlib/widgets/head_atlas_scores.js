// HeadAtlas's numbers as tables: a head's scores beside their baselines, and those of all heads.

import { keyRows } from "./head_atlas_row.js";
import { scoreOf } from "./head_atlas_state.js";
import { scoreText } from "./head_atlas_words.js";
import { element, reachWhileScrolling } from "./shared/dom.js";
import { shortNumber } from "./shared/numbers.js";
import { createFold, createTable } from "./shared/tables.js";

/** The scores of some heads, side by side, each beside its baseline. */
export function createScores(state, names) {
  const table = element("div");
  const node = element("div", { class: "attn-scroll attn-scores" }, table);
  reachWhileScrolling(node, "Scores of the chosen heads");
  function draw(heads) {
    const columns = heads.flatMap((head) => [names.short(head), "baseline"]);
    const rows = state.patterns.map(({ name, rule, texts }, i) => {
      const cells = heads.flatMap((head) => {
        const score = scoreOf(state, i, head);
        return [scoreText(score), shortNumber(score.baseline)];
      });
      return [name, ...cells, `${rule} (${texts} text${texts === 1 ? "" : "s"})`];
    });
    const caption = "Scores, mean ± standard deviation over the texts";
    table.replaceChildren(
      createTable(caption, ["score", ...columns, "what the baseline is"], rows),
    );
  }
  return { node, draw };
}

/** All numbers in a fold: the scores of the heads that are shown, and the rows of the chosen token. */
export function createNumbers(state, names) {
  return createFold(({ heads, rows, token }) => {
    const titles = ["head", ...state.patterns.map(({ name }) => name)];
    const scores = heads.map((head) => [
      names.short(head),
      ...state.patterns.map((_, i) => {
        const score = scoreOf(state, i, head);
        return `${scoreText(score)} (${shortNumber(score.baseline)})`;
      }),
    ]);
    const caption = "Scores of all heads that are shown, layer.head: mean ± spread (baseline)";
    const tables = rows.map(({ head, row }) =>
      createTable(
        `What ${names.token(token)} looks at in ${names.head(head)}`,
        ["key", "share"],
        keyRows(row, names),
      ),
    );
    return [...tables, createTable(caption, titles, scores)];
  });
}
