// A moment in which a reader sees what has just changed.

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Write a text; a frame that fades says where another one stood. */
export function writeWithFlash(node, text) {
  const before = node.textContent;
  if (before === text) return;
  node.textContent = text;
  if (before === "" || still.matches) return;
  const frame = (color) => `inset 0 0 0 2px ${color}`;
  const fade = [frame("var(--attn-query)"), frame("transparent")];
  node.animate({ boxShadow: fade }, { duration: 900, easing: "ease-in" });
}
