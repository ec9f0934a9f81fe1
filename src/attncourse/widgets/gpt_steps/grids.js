// GptSteps' lists as pictures: cells in colors, or bars, with frames around some of them.

import { signedColor, useHeadColor } from "../shared/color.js";
import { element, svgElement } from "../shared/dom.js";
import { times } from "./numbers.js";

const QUIET = 70; // of 255: how much is seen of cells that aren't the head's whose turn it is
const BAR = 0.8; // of a column's width

/** A stripe that says which rows are whose head's; `mark(head)` makes one of them wider. */
function createSpine(h) {
  const parts = times(h, (head) => {
    const part = element("span");
    useHeadColor(part, head);
    return part;
  });
  const node = element("span", { class: "attn-spine", "aria-hidden": "true" }, ...parts);
  const mark = (head) => parts.forEach((part, i) => part.classList.toggle("attn-turn", i === head));
  return { node, mark };
}

/** Numbers as cells in colors, one pixel each: negative, zero, positive. */
function createCells(rows, columns) {
  const node = element("canvas", { width: columns, height: rows, "aria-hidden": "true" });
  function draw(at, { largest, isQuiet }) {
    const image = new ImageData(columns, rows);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const number = at(row, column);
        if (number === undefined) continue;
        const alpha = isQuiet(row) ? QUIET : 255;
        image.data.set([...signedColor(number / largest), alpha], 4 * (row * columns + column));
      }
    }
    node.getContext("2d").putImageData(image, 0, 0);
  }
  return { node, draw };
}

/** Numbers as bars, a line of them for each row: from 0 to 1, or of both signs around the middle. */
function createBars(rows, columns, isSigned) {
  const paths = times(rows, (row) => {
    const path = svgElement("path");
    if (!isSigned && rows > 1) useHeadColor(path, row);
    return path;
  });
  const attributes = { viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none" };
  const node = svgElement("svg", { ...attributes, "aria-hidden": "true" }, ...paths);
  function draw(at, { largest }) {
    paths.forEach((path, row) => {
      const [zero, scale] = isSigned ? [row + 0.5, 0.5 / largest] : [row + 1, 1];
      const bars = times(columns, (column) => {
        const number = at(row, column);
        if (number === undefined) return "";
        const left = column + (1 - BAR) / 2;
        return `M${left} ${zero}V${zero - number * scale}h${BAR}V${zero}z`;
      });
      path.setAttribute("d", bars.join(""));
    });
  }
  return { node, draw };
}

const PICTURES = {
  weights: (rows, columns) => createBars(rows, columns, false),
  chances: (rows, columns) => createBars(rows, columns, false),
  logits: (rows, columns) => createBars(rows, columns, true),
};

/**
 * A list's name, its numbers, and `letters` of its columns where it has any. Lists cut into `heads`
 * have a stripe that says which rows are whose.
 */
export function createGrid(list, [rows, columns], { heads = 0, letters = [] }) {
  const picture = (PICTURES[list] ?? createCells)(rows, columns);
  const plot = element("div", { class: "attn-grid" }, picture.node);
  const spine = createSpine(heads);
  const columnNames = letters.map((letter) => element("span", {}, letter));
  const top = element("div", { class: "attn-letters", "aria-hidden": "true" }, ...columnNames);
  const drawn = element("div", { class: "attn-drawn" }, spine.node, top, plot);
  const node = element(
    "div",
    { class: `attn-list attn-list-${list}` },
    element("code", {}, list),
    drawn,
  );
  node.style.setProperty("--columns", columns);
  node.style.setProperty("--rows", rows);
  spine.node.hidden = heads === 0;
  top.hidden = letters.length === 0;

  /** Where some rows and columns stand in the plot. */
  function placeAt(node, [top, height], [left, width]) {
    const percent = { top: top / rows, height: height / rows };
    Object.assign(percent, { left: left / columns, width: width / columns });
    for (const [side, share] of Object.entries(percent)) node.style[side] = `${100 * share}%`;
    return node;
  }
  function frame(name, { rows: some = [0, rows], columns: few = [0, columns] }) {
    return placeAt(element("span", { class: `attn-frame ${name}` }), some, few);
  }

  const cursor = element("span", { class: "attn-here" });
  cursor.hidden = true;
  plot.append(cursor);
  function pointAt(cell) {
    cursor.hidden = cell === null;
    if (cell !== null) placeAt(cursor, [cell.row, 1], [cell.column, 1]);
  }

  /**
   * Draw numbers, and frames around what is read and made, which may appear bit by bit; `lit` is the
   * column that is named.
   */
  function draw(at, { head, lit, reads, makes, appears, ...options }) {
    picture.draw(at, options);
    spine.mark(head);
    columnNames.forEach((name, i) => name.classList.toggle("attn-lit", i === lit));
    const frames = [...reads.map((one) => frame("attn-reads", one))];
    frames.push(...makes.map((one) => frame("attn-makes", one)));
    for (const one of frames) one.classList.toggle("attn-appears", appears);
    plot.replaceChildren(picture.node, ...frames, cursor);
  }
  return { list, rows, columns, node, plot, draw, pointAt };
}
