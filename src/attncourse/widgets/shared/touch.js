// Fingers: along a control they change it, up and down they scroll the page.

/** Whether a pointer has moved further to the side than up or down since an earlier event. */
export function isSideways(event, start) {
  const [right, down] = [event.clientX - start.clientX, event.clientY - start.clientY];
  return Math.abs(right) > Math.abs(down);
}

const SLACK = 4; // pixels that a pointer moves by mistake

/**
 * Tell how far a pointer drags a node sideways: `begin()`, then `move(pixels)`. A press without a
 * drag, and a finger that scrolls the page, tell nothing.
 */
export function onDragSideways(node, { begin, move }) {
  let start = null;
  let isDragged = false;
  node.addEventListener("pointerdown", (event) => {
    start = event.isPrimary && event.button === 0 ? event : null;
    isDragged = false;
  });
  node.addEventListener("pointermove", (event) => {
    if (start === null || !event.isPrimary) return;
    const right = event.clientX - start.clientX;
    if (!isDragged) {
      if (Math.abs(right) < SLACK || !isSideways(event, start)) return;
      isDragged = true;
      node.setPointerCapture(event.pointerId);
      begin();
    }
    move(right);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    node.addEventListener(end, () => (start = null));
  }
}

/**
 * Call `tell` when a reader moves a range input: by keys, by mouse, by a tap, by a finger along it.
 * A browser moves it already where a finger comes down; if that finger then scrolls the page, the
 * input goes back, and nothing is told.
 */
export function tellMoves(input, tell) {
  let waiting = null; // where a finger came down, and what the input was before
  const settle = () => {
    const { value } = waiting;
    waiting = null;
    if (input.value !== value) tell();
  };
  input.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") waiting = { event, value: input.value };
  });
  input.addEventListener("pointermove", (event) => {
    if (waiting !== null && isSideways(event, waiting.event)) settle();
  });
  input.addEventListener("pointerup", () => waiting !== null && settle());
  input.addEventListener("pointercancel", () => {
    if (waiting !== null) input.value = waiting.value;
    waiting = null;
  });
  input.addEventListener("input", () => {
    if (waiting === null) tell();
  });
}
