// HeadAtlas's numbers as tables: a head's scores beside their baselines, and those of all heads.

import { element, reachWhileScrolling } from "../shared/dom.js";
import { many, shortNumber, withMinus } from "../shared/numbers.js";
import { createNote } from "../shared/parts.js";
import { createFold, createTable } from "../shared/tables.js";
import { keyRows } from "./row.js";
import { scoreOf } from "./state.js";
import { scoreText } from "./words.js";

/** What the baselines are, and how many rows have a pattern, in a sentence. */
function sayBaselines(patterns) {
  const all = Math.max(...patterns.map(({ texts }) => texts));
  const said = patterns.map(({ name, rule, texts, rows }) => {
    const found = texts < all ? ` in ${texts} of ${all} texts` : "";
    return `${name} (${many(rows, "row")}${found}), ${withMinus(rule)}`;
  });
  return `Baselines: ${said.join("; ")}.`;
}

/** The scores of some heads, side by side, beside their baselines. */
export function createScores(state, names) {
  const table = element("div");
  const scroll = element("div", { class: "attn-scroll attn-scores" }, table);
  reachWhileScrolling(scroll, "Scores of the chosen heads");
  const node = element(
    "div",
    { class: "attn-scored" },
    scroll,
    createNote(sayBaselines(state.patterns)),
  );

  function draw(heads) {
    const places = state.patterns.map((_, i) => heads.map((head) => scoreOf(state, i, head)));
    const isShared = places.every((scores) =>
      scores.every(({ baseline }) => baseline === scores[0].baseline),
    );
    const base = ({ baseline }) => shortNumber(baseline);
    const rows = places.map((scores, i) => [
      state.patterns[i].name,
      ...scores.flatMap((score) => (isShared ? scoreText(score) : [scoreText(score), base(score)])),
      ...(isShared ? [base(scores[0])] : []),
    ]);
    const columns = heads.flatMap((head) =>
      isShared ? names.short(head) : [names.short(head), "baseline"],
    );
    const caption = "Mean ± standard deviation over the texts";
    const titles = ["score", ...columns, ...(isShared ? ["baseline"] : [])];
    table.replaceChildren(createTable(caption, titles, rows));
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
    return [createTable(caption, titles, scores), ...tables];
  });
}
