// A part of HeadLab that few readers need: on a phone it waits under its name.

import { element } from "../shared/dom.js";
import { createQuietButton } from "../shared/parts.js";

/** `content` under a button with this name, which is there on a phone alone; `open()` shows it. */
export function createFolded(name, ...content) {
  const opener = createQuietButton(name, () => open(!node.classList.contains("attn-open")));
  opener.classList.add("attn-opener");
  const node = element("div", { class: "attn-folded" }, opener, ...content);
  function open(isOpen = true) {
    node.classList.toggle("attn-open", isOpen);
    opener.setAttribute("aria-expanded", String(isOpen));
  }
  open(false);
  return { node, open };
}
