// Flow's matrices: tables of numbers to press.

import { textColorOn, useHeadColor, weightColor } from "../shared/color.js";
import { element, reachWhileScrolling } from "../shared/dom.js";
import { moveByKey } from "../shared/keys.js";
import { createSwatch } from "../shared/parts.js";
import { times } from "./numbers.js";
import { formula, MATRICES, textIn } from "./words.js";

/** A number to press, in its cell. */
function createCell(name, value) {
  const button = element("button", { type: "button", tabindex: -1 }, textIn(name, value));
  if (name === "weights") {
    const color = weightColor(value);
    button.className = "attn-weight";
    button.style.background = `rgb(${color.map(Math.round)})`;
    button.style.color = textColorOn(color);
  }
  return element("td", {}, button);
}

/** Let arrow keys lead from number to number in a table; returns how to make one its Tab stop. */
function moveWithin(table, grid) {
  let stop = grid[0][0];
  const makeTabStop = (button) => {
    stop.tabIndex = -1;
    stop = button;
    stop.tabIndex = 0;
  };
  makeTabStop(stop);
  table.addEventListener("focusin", ({ target }) => makeTabStop(target));
  table.addEventListener("keydown", (event) => {
    const row = grid.findIndex((line) => line.includes(event.target));
    const at = { row, column: grid[row].indexOf(event.target) };
    const next = moveByKey(event.key, at, grid.length, grid[0].length);
    if (next === null) return;
    event.preventDefault();
    grid[next.row][next.column].focus();
  });
  return makeTabStop;
}

/** A header in a head's color. */
function createHeadHeader(scope, head, text, attributes = {}) {
  const node = element("th", { scope, class: "attn-of-head", ...attributes }, text);
  useHeadColor(node, head);
  return node;
}

/** What makes a matrix's headers: of a row, and the lines of them above the columns of some heads. */
function headersOf(name, { columns, parts, width }, { tokenAt, numHeads }) {
  const { apart, map, role = "attn-query" } = MATRICES[name];
  const plain = (scope, text) => element("th", { scope }, text);
  const ofToken = (scope, i, role) =>
    element("th", { scope, class: role, title: tokenAt(i) }, element("bdi", {}, tokenAt(i)));

  function row(i) {
    if (!name.startsWith("w_")) return ofToken("row", i, role);
    if (name !== "w_o" || numHeads === 1) return plain("row", String(i + 1));
    const head = Math.floor((i * numHeads) / columns);
    return createHeadHeader("row", head, `head ${head + 1}`);
  }
  function above(heads) {
    const numbers = heads.flatMap(() =>
      times(width, (c) => (map ? ofToken("col", c, "attn-key") : plain("col", String(c + 1)))),
    );
    if (parts === 1 || apart) return [numbers];
    const isWide = width > 1; // a head of one column is told by its own number
    const names = heads.map((head) => {
      const attributes = isWide ? { colspan: width } : { title: `head ${head + 1}` };
      const text = isWide ? `head ${head + 1}` : String(head + 1);
      return createHeadHeader(isWide ? "colgroup" : "col", head, text, attributes);
    });
    return isWide ? [names, numbers] : [names];
  }
  return { row, above };
}

/**
 * A matrix as one table, or as one per head. `press(i)` is told of number i when it is pressed;
 * `mark(traced, sources, head)` frames numbers by their places, in tables of that head or of all.
 */
export function createMatrix(name, matrix, { press, ...state }) {
  const { values, columns, parts, width } = matrix;
  const { symbol, apart } = MATRICES[name];
  const headers = headersOf(name, matrix, state);
  const cells = Array.from(values, (value) => createCell(name, value));
  const makeTabStop = []; // of each table

  function createTable(heads) {
    const caption = element("caption", {}, ...formula(symbol));
    if (apart && parts > 1) {
      caption.prepend(createSwatch(heads[0]));
      caption.append(` of head ${heads[0] + 1}`);
    }
    const grid = times(values.length / columns, (row) =>
      heads.flatMap((head) => times(width, (c) => cells[row * columns + head * width + c])),
    );
    const above = headers.above(heads).map((line) => element("tr", {}, element("td"), ...line));
    const body = grid.map((line, i) => element("tr", {}, headers.row(i), ...line));
    const table = element("table", {}, caption);
    table.append(element("thead", {}, ...above), element("tbody", {}, ...body));
    table.style.setProperty("--columns", grid[0].length);
    const buttons = grid.map((line) => line.map((cell) => cell.firstChild));
    makeTabStop.push(moveWithin(table, buttons));
    table.addEventListener("click", ({ target }) => {
      const pressed = cells.indexOf(target.parentNode);
      if (pressed >= 0) press(pressed);
    });
    const box = element("div", { class: "attn-scroll" }, table);
    reachWhileScrolling(box, caption.textContent);
    return box;
  }
  const heads = times(parts, (head) => head);
  const nodes = apart ? heads.map((head) => createTable([head])) : [createTable(heads)];

  function mark(traced, sources, ofHead) {
    cells.forEach((cell, i) => {
      const isTraced = i === traced;
      cell.className = isTraced ? "attn-traced" : sources.includes(i) ? "attn-source" : "";
      cell.firstChild.setAttribute("aria-pressed", String(isTraced));
    });
    if (apart) nodes.forEach((box, head) => box.classList.toggle("attn-other", head !== ofHead));
    if (traced === null) return;
    const table = apart ? Math.floor((traced % columns) / width) : 0;
    makeTabStop[table](cells[traced].firstChild);
  }
  return { nodes, mark };
}
