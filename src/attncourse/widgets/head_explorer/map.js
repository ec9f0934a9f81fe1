// HeadExplorer's large map: one head with token labels, and a cursor that reads it cell by cell.

import { element } from "../shared/dom.js";
import { moveByKey } from "../shared/keys.js";
import { cellAt, createTokenMap } from "../shared/token_map.js";
import { createWeightsPicture } from "../shared/weights_picture.js";

const MOST_MARKED = 64; // rows; the dots of more would touch

/** A head's map; `read(cell)` is told where a reader points, by hand or by keys. */
export function createHeadMap(tokens, { read }) {
  const T = tokens.length;
  const picture = createWeightsPicture();
  const plot = element("div", { class: "attn-plot", tabindex: 0, role: "application" });
  plot.append(picture.node);
  const map = createTokenMap(tokens, plot);
  const node = element("div", { class: "attn-scroll" }, map.node);
  let cursor = null;

  function pointAt(cell) {
    cursor = cell;
    map.pointAt(cell);
  }
  function follow(event) {
    const cell = cellAt(event, plot, T, T);
    if (cell.row !== cursor?.row || cell.column !== cursor?.column) read(cell);
  }
  plot.addEventListener("pointermove", follow);
  plot.addEventListener("pointerdown", (event) => read(cellAt(event, plot, T, T)));
  plot.addEventListener("focus", () => read(cursor ?? { row: 0, column: 0 }));
  plot.addEventListener("keydown", (event) => {
    const next = moveByKey(event.key, cursor, T, T);
    if (next === null) return;
    event.preventDefault();
    read(next);
    map.showCursor();
  });

  function draw(weights, name, options) {
    picture.draw(weights, T, { ...options, isMarked: T <= MOST_MARKED });
    plot.setAttribute("aria-label", `Weights of ${name}; arrow keys read them`);
  }
  pointAt(null);
  return { node, draw, pointAt };
}
