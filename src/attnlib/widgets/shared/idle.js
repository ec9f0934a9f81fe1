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

/** Something to be done after so many milliseconds, unless `end` comes first; `wait` begins to count. */
export function createDeadline(milliseconds, act) {
  let timer = null;
  function end() {
    clearTimeout(timer);
    timer = null;
  }
  function wait() {
    timer ??= setTimeout(() => {
      timer = null;
      act();
    }, milliseconds);
  }
  return { wait, end };
}
