// TwoHeads' fold, which opens within a frame.

import { element } from "./shared/dom.js";
import { afterPaint } from "./shared/idle.js";

/** Parts behind a title. Each frame shows one more: all of them take longer than a click may. */
export function createFold(title, parts) {
  const fold = element("details", {}, element("summary", {}, title), ...parts);
  const later = parts.slice(1);
  const hide = () => later.forEach((part) => (part.hidden = true));
  let callOff = () => {};
  function showFrom(next) {
    if (next === later.length) return;
    callOff = afterPaint(() => {
      later[next].hidden = false;
      showFrom(next + 1);
    });
  }
  hide();
  fold.addEventListener("toggle", () => {
    callOff();
    hide();
    if (fold.open) showFrom(0);
  });
  return fold;
}
