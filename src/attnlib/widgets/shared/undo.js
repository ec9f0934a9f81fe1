// A reader's way back.

import { createButton } from "./parts.js";

/** A button that takes changes back: `read()` gives what to keep, `restore(kept)` brings it back. */
export function createUndo({ read, restore }) {
  const kept = []; // newest last
  const draw = () => node.setAttribute("aria-disabled", String(kept.length === 0));
  const node = createButton("Undo", () => {
    if (kept.length === 0) return;
    restore(kept.pop());
    draw();
  });
  /** Keep what there is, before it changes. */
  function remember() {
    kept.push(read());
    draw();
  }
  draw();
  return { node, remember };
}
