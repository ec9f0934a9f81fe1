// Tokens x tokens in the browser: labels around a square of cells, a cursor in it, and a table.

import { element, write, writeAttribute } from "./dom.js";
import { shortNumber } from "./numbers.js";
import { readerOf } from "./state.js";
import { createFold, createTable } from "./tables.js";

/** Tokens with their queries and keys, checked. */
export function readTokens(model) {
  const read = readerOf(model);
  const [T, d] = read.counts("T", "d");
  const tokens = read.texts("tokens", T);
  return { tokens, T, d, q: read.numbers("q", T * d), k: read.numbers("k", T * d) };
}

/** A name for each token by its index, which those that occur twice get in parentheses. */
export function tellApart(tokens) {
  const once = (token) => tokens.indexOf(token) === tokens.lastIndexOf(token);
  return (i) => (once(tokens[i]) ? tokens[i] : `${tokens[i]} (${i})`);
}

/** The cell of a plot at which a pointer event happened, or the nearest one. */
export function cellAt(event, plot, rows, columns) {
  const box = plot.getBoundingClientRect();
  const index = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
  return {
    row: index((event.clientY - box.top) / box.height, rows),
    column: index((event.clientX - box.left) / box.width, columns),
  };
}

/**
 * Tokens as labels of the rows and columns of a plot, and a cursor on one of its cells. There may be
 * fewer `rows` than columns.
 */
export function createTokenMap(tokens, plot, rows = tokens) {
  const label = () => element("span", { dir: "auto" });
  const [rowLabels, columnLabels] = [rows.map(label), tokens.map(label)];
  const cursorBox = element("div", { class: "attn-cursor" });
  plot.append(cursorBox);
  const hidden = { "aria-hidden": "true" };
  const node = element(
    "div",
    { class: "attn-map" },
    element("span", { class: "attn-looks", ...hidden }, "who looks ↓"),
    element("span", { class: "attn-looked-at", ...hidden }, "looked at →"),
    element("div", { class: "attn-columns", ...hidden }, ...columnLabels),
    element("div", { class: "attn-rows", ...hidden }, ...rowLabels),
    plot,
  );
  node.style.setProperty("--tokens", tokens.length);
  node.style.setProperty("--rows", rows.length);
  node.classList.toggle("attn-dense", tokens.length > 14);

  /** Give rows and columns other names. */
  function name(columns, rows = columns) {
    const labels = [...rowLabels, ...columnLabels];
    [...rows, ...columns].forEach((token, i) => {
      write(labels[i], token);
      writeAttribute(labels[i], "title", token);
      labels[i].classList.toggle("attn-one-letter", [...token].length === 1);
    });
  }
  name(tokens, rows);

  function pointAt(cell) {
    cursorBox.hidden = cell === null;
    if (cell === null) return;
    cursorBox.style.setProperty("--row", cell.row);
    cursorBox.style.setProperty("--column", cell.column);
    rowLabels.forEach((label, i) => label.classList.toggle("attn-at", i === cell.row));
    columnLabels.forEach((label, j) => label.classList.toggle("attn-at", j === cell.column));
  }
  const showCursor = () => cursorBox.scrollIntoView({ block: "nearest", inline: "nearest" });
  return { node, name, pointAt, showCursor };
}

/** T x T weights as a table with the sum of each row, in a fold. */
export function createWeightsTable(tokens) {
  const T = tokens.length;
  return createFold(({ weights, caption }) => {
    const rows = tokens.map((token, i) => {
      const row = Array.from(weights.subarray(i * T, (i + 1) * T));
      const numbers = [...row, row.reduce((a, b) => a + b)];
      return [token, ...numbers.map((number) => shortNumber(number, 3))];
    });
    return [createTable(caption, ["who looks", ...tokens, "sum"], rows)];
  });
}
