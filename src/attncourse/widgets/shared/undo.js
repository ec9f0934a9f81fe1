// A reader's way back.

import { createQuietButton } from "./parts.js";

/**
 * A button that takes changes back: `read()` gives what to keep, `restore(kept)` brings it back. In
 * a widget that it listens to, Ctrl+Z does the same; a text that is being typed is the browser's.
 */
export function createUndo({ read, restore }) {
  const kept = []; // newest last
  const draw = () => node.setAttribute("aria-disabled", String(kept.length === 0));
  let typedIn = null; // the field whose text is being typed
  function takeBack() {
    if (kept.length === 0) return;
    restore(kept.pop());
    draw();
  }
  const node = createQuietButton("Undo", takeBack);
  /** Keep what there is, before it changes. */
  function remember() {
    kept.push(read());
    draw();
  }
  function listenTo(root) {
    root.addEventListener("input", ({ target }) => {
      typedIn = target.type === "text" ? target : null;
    });
    root.addEventListener("focusout", () => (typedIn = null));
    root.addEventListener("keydown", (event) => {
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      if (!isUndo || event.key.toLowerCase() !== "z" || event.target === typedIn) return;
      event.preventDefault();
      takeBack();
    });
  }
  draw();
  return { node, remember, listenTo };
}
