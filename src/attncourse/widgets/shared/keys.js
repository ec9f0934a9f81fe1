// Keys: which of them JupyterLab must leave alone, and where they lead in a grid.

/**
 * Keep JupyterLab from taking arrow keys and Enter for its shortcuts while a control has the focus.
 * It looks for the mark on the focused element itself.
 */
export function keepKeys(root) {
  root.addEventListener("focusin", ({ target }) => {
    target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
}

/** Move a position in a grid by an arrow, Home or End key; null for any other key. */
export function moveByKey(key, { row, column }, rows, columns) {
  const moves = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, columns - 1],
  };
  if (!(key in moves)) return null;
  const clamp = (value, size) => Math.max(0, Math.min(value, size - 1));
  return { row: clamp(moves[key][0], rows), column: clamp(moves[key][1], columns) };
}
