// A map of weights in which a reader goes from cell to cell.

import { element } from "./dom.js";
import { moveByKey } from "./keys.js";
import { cellAt, createTokenMap } from "./token_map.js";

/**
 * A picture between the names of its columns and rows, with a cursor for mouse, finger and arrow keys:
 * `read(cell)` is told where it points, {row, column}, or null.
 */
export function createReadingMap(picture, columns, rows, read) {
  const plot = element("div", { class: "attn-plot", tabindex: 0, role: "application" });
  plot.append(picture);
  const map = createTokenMap(columns, plot, rows);
  const node = element("div", { class: "attn-scroll" }, map.node);
  const size = [rows.length, columns.length];
  let cursor = null;
  function pointAt(cell) {
    cursor = cell;
    map.pointAt(cell);
    read(cell);
  }
  for (const kind of ["pointermove", "pointerdown"]) {
    plot.addEventListener(kind, (event) => pointAt(cellAt(event, plot, ...size)));
  }
  plot.addEventListener("focus", () => pointAt(cursor ?? { row: 0, column: 0 }));
  plot.addEventListener("keydown", (event) => {
    const next = moveByKey(event.key, cursor, ...size);
    if (next === null) return;
    event.preventDefault();
    pointAt(next);
    map.showCursor();
  });
  map.pointAt(null);
  return { node, plot, name: map.name, cursor: () => cursor };
}
