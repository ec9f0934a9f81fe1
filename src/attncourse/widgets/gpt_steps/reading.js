// Reading single numbers out of GptSteps' pictures, by mouse, finger or arrow keys.

import { moveByKey } from "../shared/keys.js";
import { cellAt } from "../shared/token_map.js";

/**
 * Make a node one stop of the Tab key, in whose grids arrow keys lead from cell to cell, and past an
 * edge to the next grid. `tell(list, row, column)` is told where a reader points.
 */
export function createReading(node, tell) {
  let grids = []; // in their order
  let cursor = null; // {grid, row, column}

  function pointAt(next) {
    cursor?.grid.pointAt(null);
    cursor = next;
    cursor.grid.pointAt(cursor);
    tell(cursor.grid.list, cursor.row, cursor.column);
  }
  node.addEventListener("focus", () => pointAt(cursor ?? { grid: grids[0], row: 0, column: 0 }));
  node.addEventListener("keydown", (event) => {
    const { grid, row, column } = cursor;
    const cell = moveByKey(event.key, { row, column }, grid.rows, grid.columns);
    if (cell === null) return;
    event.preventDefault();
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined || cell.column !== column) return pointAt({ grid, ...cell });
    const other = grids[grids.indexOf(grid) + by];
    if (other === undefined) return;
    const edge = by > 0 ? 0 : other.columns - 1;
    pointAt({ grid: other, row: Math.min(row, other.rows - 1), column: edge });
  });

  /** Let the node have these grids; the cursor is nowhere. */
  function show(shown) {
    grids = shown;
    cursor = null;
    for (const grid of grids) {
      for (const kind of ["pointermove", "pointerdown"]) {
        grid.plot.addEventListener(kind, (event) =>
          pointAt({ grid, ...cellAt(event, grid.plot, grid.rows, grid.columns) }),
        );
      }
    }
  }
  /** Tell again what stands where the reader points. */
  function refresh() {
    if (cursor !== null) tell(cursor.grid.list, cursor.row, cursor.column);
  }
  return { show, refresh };
}
