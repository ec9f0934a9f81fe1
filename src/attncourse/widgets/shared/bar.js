// A bar from 0 to 1.

import { element } from "./dom.js";
import { shortNumber } from "./numbers.js";

/** A bar from 0 to 1 with its number, and a line at a baseline. */
export function createBar(name) {
  const [bar, line] = [
    element("span", { class: name }),
    element("span", { class: "attn-baseline" }),
  ];
  const before = element("span", { class: "attn-before" });
  const track = element(
    "span",
    { class: "attn-bar-track", "aria-hidden": "true" },
    bar,
    before,
    line,
  );
  const number = element("span", { class: "attn-number" });
  function draw(value, baseline, unmuted = null) {
    bar.style.width = `${100 * (value ?? 0)}%`;
    line.hidden = baseline === null;
    if (!line.hidden) line.style.left = `${100 * baseline}%`;
    before.hidden = unmuted === null || unmuted === undefined;
    if (!before.hidden) before.style.left = `${100 * unmuted}%`;
    number.textContent = value === undefined || value === null ? "" : shortNumber(value);
  }
  return { nodes: [track, number], draw };
}
