// GptSteps' code: its lines as buttons, the one that has just run lit.

import { element } from "../shared/dom.js";
import { createToolbar } from "../shared/toolbar.js";
import { LINES } from "./lines.js";

const INDENT = 4; // spaces in the code

/**
 * The lines of the loop; `jump(line)` is told which one a reader presses. Below the scores there is a
 * note: what would stand there.
 */
export function createCode(code, jump) {
  const toolbar = createToolbar("Lines of the loop", "attn-code");
  const buttons = code.map((text, i) => {
    const button = element("button", { type: "button" }, element("code", {}, text.trimStart()));
    const indent = (text.length - text.trimStart().length) / INDENT;
    button.style.setProperty("--indent", indent);
    button.addEventListener("click", () => jump(LINES[i]));
    return button;
  });
  toolbar.show(buttons);
  const note = element("span", { class: "attn-no-mask", "aria-hidden": "true" }, "no causal mask");
  buttons[LINES.indexOf("scores")].after(note);

  let lit = buttons[0];
  /** Keep the line that is lit in sight, where the box is lower than the code. */
  function keepInSight() {
    const { offsetTop, offsetHeight } = lit;
    const { clientHeight, scrollHeight } = toolbar.node;
    if (scrollHeight <= clientHeight) return;
    toolbar.node.scrollTop = offsetTop + offsetHeight / 2 - clientHeight / 2;
  }
  function draw(line, isAtMask) {
    const place = LINES.indexOf(line);
    toolbar.press(place);
    note.hidden = !isAtMask;
    lit = buttons[place];
    keepInSight();
  }
  new ResizeObserver(keepInSight).observe(toolbar.node); // it gets its height once it is on the page
  return { node: toolbar.node, draw };
}
