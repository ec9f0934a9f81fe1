// Many buttons that are one stop of the Tab key.

import { element, showChildren } from "./dom.js";

/**
 * Buttons, one of them in the tab order; arrow keys, Home and End move the focus among them, line
 * by line as they stand on the page.
 */
export function createToolbar(name, className) {
  const node = element("div", { class: className, role: "toolbar", "aria-label": name });
  let buttons = [];

  function makeTabStop(place) {
    buttons.forEach((button, i) => (button.tabIndex = i === place ? 0 : -1));
  }

  /** How many stand in the first line. */
  function columns() {
    const top = buttons[0].offsetTop;
    const next = buttons.findIndex((button) => button.offsetTop > top);
    return next < 0 ? buttons.length : next;
  }

  node.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(event.target);
    const moved = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 };
    if (/^Arrow(Up|Down)$/.test(event.key)) {
      Object.assign(moved, { ArrowUp: at - columns(), ArrowDown: at + columns() });
    }
    if (at < 0 || !(event.key in moved)) return;
    event.preventDefault();
    const next = moved[event.key];
    if (!(next in buttons)) return;
    makeTabStop(next);
    buttons[next].focus();
  });

  /** Show these buttons; those that stay are left where they are, with the focus. */
  function show(shown) {
    showChildren(node, shown);
    buttons = shown;
  }

  function press(place) {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === place)));
    makeTabStop(Math.max(0, place)); // where none is pressed, the first
  }
  return { node, show, press };
}
