// MaskPainter's square: a mask painted cell by cell, by mouse, finger or keys.

import { textColorOn, weightColor } from "../shared/color.js";
import { element, svgElement } from "../shared/dom.js";
import { moveByKey } from "../shared/keys.js";
import { shortNumber, tileNumber } from "../shared/numbers.js";
import { createLive } from "../shared/parts.js";
import { cellAt, createTokenMap, tellApart } from "../shared/token_map.js";
import { isSideways } from "../shared/touch.js";

/** The cells between two cells, the last one included: a fast pointer skips some. */
function cellsOnTheWay(from, to) {
  const [down, right] = [to.row - from.row, to.column - from.column];
  const steps = Math.max(Math.abs(down), Math.abs(right), 1);
  return Array.from({ length: steps }, (_, i) => ({
    row: from.row + Math.round((down * (i + 1)) / steps),
    column: from.column + Math.round((right * (i + 1)) / steps),
  }));
}

/** Right of this line lies the future. */
function createStairs(T) {
  const steps = Array.from({ length: T - 1 }, (_, i) => `V${i + 1}H${i + 2}`).join("");
  const line = (name) => svgElement("path", { d: `M1 0${steps}V${T}`, class: name });
  return svgElement("svg", { viewBox: `0 0 ${T} ${T}` }, line("attn-halo"), line("attn-stairs"));
}

/** The mask as a square of cells, painted by pointer or keys; each cell shows its weight. */
export function createPainting(tokens, { paint, begin, end }) {
  const T = tokens.length;
  const cells = Array.from({ length: T * T }, () => element("span"));
  const square = element("div", { class: "attn-cells", "aria-hidden": "true" }, ...cells);
  const plot = element("div", { class: "attn-plot", tabindex: 0, role: "application" }, square);
  plot.setAttribute("aria-label", "Mask; arrow keys move, space allows or forbids the look");
  square.append(createStairs(T));
  plot.classList.toggle("attn-few", T <= 8);
  const map = createTokenMap(tokens, plot);
  const live = createLive();
  live.dir = "ltr"; // whatever way the words run
  const node = element("div", {}, element("div", { class: "attn-scroll" }, map.node), live);
  const named = tellApart(tokens);
  let [mask, weights, cursor] = [null, null, null];
  let brush = null; // true while a drag allows looks, false while it forbids them
  let waiting = null; // where a finger came down, until it is clear that it doesn't scroll the page

  function read() {
    map.pointAt(cursor);
    if (cursor === null) {
      live.textContent = "Click, tap or drag along a row; or use the arrow keys and space.";
      return;
    }
    const cell = cursor.row * T + cursor.column;
    const weight = element("strong", {}, mask[cell] ? shortNumber(weights[cell]) : "");
    live.replaceChildren(
      element("bdi", { class: "attn-query" }, named(cursor.row)),
      " → ",
      element("bdi", { class: "attn-key" }, named(cursor.column)),
      mask[cell] ? ": may look, weight " : ": may not look",
      weight,
    );
  }

  /** Begin to paint at the cursor: what its cell becomes, all cells of the drag become. */
  function touchDown() {
    waiting = null;
    brush = !mask[cursor.row * T + cursor.column];
    begin();
    paint([cursor], brush);
  }
  function letGo() {
    [waiting, brush] = [null, null];
    end();
  }
  plot.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary) return letGo(); // two fingers zoom
    if (event.button !== 0) return;
    plot.setPointerCapture(event.pointerId);
    cursor = cellAt(event, plot, T, T);
    if (event.pointerType === "touch") waiting = event;
    else touchDown();
  });
  plot.addEventListener("pointermove", (event) => {
    if (!event.isPrimary || (waiting !== null && !isSideways(event, waiting))) return;
    const next = cellAt(event, plot, T, T);
    if (next.row === cursor?.row && next.column === cursor?.column) return;
    if (waiting !== null) touchDown();
    const way = cellsOnTheWay(cursor ?? next, next);
    cursor = next;
    if (brush === null) read();
    else paint(way, brush);
  });
  plot.addEventListener("pointerup", () => {
    if (waiting !== null) touchDown();
    letGo();
  });
  plot.addEventListener("pointercancel", letGo); // also where the page scrolls
  plot.addEventListener("focus", () => {
    cursor ??= { row: 0, column: 0 };
    read();
  });
  plot.addEventListener("keydown", (event) => {
    const next = moveByKey(event.key, cursor, T, T);
    if (next === null && event.key !== " ") return;
    event.preventDefault();
    if (next === null) {
      touchDown();
      return letGo();
    }
    cursor = next;
    read();
    map.showCursor();
  });

  function draw(newMask, newWeights, { blind, isCausal, isUnsolved }) {
    [mask, weights] = [newMask, newWeights];
    const showsLeaks = isCausal && !isUnsolved;
    cells.forEach((span, cell) => {
      const [row, column] = [Math.floor(cell / T), cell % T];
      const color = mask[cell] ? weightColor(weights[cell]) : null;
      span.style.background = color ? `rgb(${color})` : "";
      span.style.color = color ? textColorOn(color) : "";
      span.textContent = color ? tileNumber(weights[cell]) : "";
      span.classList.toggle("attn-leak", showsLeaks && mask[cell] && column > row);
      span.classList.toggle("attn-blind", blind.includes(row));
    });
    read();
  }
  return { node, draw };
}
