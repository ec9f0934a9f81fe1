// What is in the window.

/** Whether a node is in the window, as `isSeen()`; `appear()` is called when it comes there. */
export function createSight(node, appear) {
  let isSeen = false;
  const watch = new IntersectionObserver((entries) => {
    isSeen = entries.at(-1).isIntersecting;
    if (isSeen) appear();
  });
  watch.observe(node);
  return { isSeen: () => isSeen, end: () => watch.disconnect() };
}
