// Work that can wait.

/**
 * Do something when the browser has nothing else to do, or after `within` milliseconds; returns what
 * calls it off.
 */
export function whenIdle(work, { within } = {}) {
  if (!("requestIdleCallback" in window)) {
    const timer = setTimeout(work, 200); // WebKit
    return () => clearTimeout(timer);
  }
  const request = requestIdleCallback(work, { timeout: within });
  return () => cancelIdleCallback(request);
}

/** Do something once what is changed now has been painted; returns what calls it off. */
export function afterPaint(work) {
  let timer;
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(work);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}
