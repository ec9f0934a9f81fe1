// Flow's controls: which tokens, and which head.

import { element } from "../shared/dom.js";
import { createButton, createSwatch } from "../shared/parts.js";
import { createToolbar } from "../shared/toolbar.js";
import { times } from "./numbers.js";

/** A token to choose for each place. */
export function createSequence(tokens, choose) {
  const options = () => tokens.map((token, i) => element("option", { value: i }, token));
  const selects = tokens.map((_, place) => {
    const select = element("select", { "aria-label": `Token at place ${place}` }, ...options());
    select.addEventListener("change", () => choose(place, Number(select.value)));
    return select;
  });
  const node = element("div", { class: "attn-row", role: "group" }, ...selects);
  node.setAttribute("aria-label", "Tokens");
  const draw = (sequence) => selects.forEach((select, i) => (select.value = sequence[i]));
  return { node, draw };
}

/** Which head is shown where there is no room for all. */
export function createHeadChoice(count, choose) {
  const toolbar = createToolbar("Head", "attn-row attn-one-head");
  const buttons = times(count, (head) => createButton(`head ${head + 1}`, () => choose(head)));
  buttons.forEach((button, head) => button.prepend(createSwatch(head), " "));
  toolbar.show(buttons);
  return toolbar;
}
