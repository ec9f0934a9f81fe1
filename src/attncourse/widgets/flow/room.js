// The room that Flow's stage keeps, so that nothing moves from step to step.

import { element } from "../shared/dom.js";
import { afterPaint, whenIdle } from "../shared/idle.js";

/**
 * Room for the tallest of `count` steps, and for the longest of their sentences.
 *
 * They are measured in twins of the stage that nobody sees, one at a time while the stage is in
 * sight and the browser idle, for all together they take longer than a click may.
 * `fill(step, table, sentence)` puts a step into a twin. `key()` is a text of all that heights hang
 * on, beside the stage's width: where it changes, they are measured anew; what isn't measured yet
 * when room is needed is measured as soon as the click that needs it is seen.
 */
export function createRoom(stage, [table, sentence], { count, key, fill }) {
  let measuredFor = null;
  let reservedFor = null;
  let heights = []; // of each step: [table's, sentence's]
  let callOff = () => {};
  let callOffKeeping = () => {};
  let isInSight = false;
  const watch = new IntersectionObserver(([{ isIntersecting }]) => {
    isInSight = isIntersecting;
    if (isInSight) prepare();
  });
  watch.observe(stage);
  let width = null; // read when the browser has just laid the page out: else it would do so once more
  const watchWidth = new ResizeObserver(() => {
    if (stage.clientWidth === width) return;
    width = stage.clientWidth;
    prepare();
  });
  watchWidth.observe(stage);

  function begin() {
    width ??= stage.clientWidth;
    const now = `${width} ${key()}`;
    if (now === measuredFor) return;
    measuredFor = now;
    heights = [];
  }
  /** Measure the next steps, up to `end`; all of them stand there before one is read. */
  function measureUntil(end) {
    const filled = [];
    for (let step = heights.length; step < Math.min(end, count); step++) {
      const parts = [table, sentence].map(({ className }) => element("div", { class: className }));
      fill(step, ...parts);
      const twin = element("div", { class: `${stage.className} attn-twin` }, ...parts);
      stage.append(twin);
      filled.push([twin, parts]);
    }
    heights.push(...filled.map(([, parts]) => parts.map(({ offsetHeight }) => offsetHeight)));
    for (const [twin] of filled) twin.remove();
  }
  function prepare() {
    callOff();
    callOff = whenIdle(() => {
      begin();
      if (heights.length >= count || !isInSight) return;
      measureUntil(heights.length + 1);
      prepare();
    });
  }
  function keepRoom() {
    begin();
    measureUntil(count);
    reservedFor = measuredFor;
    [table, sentence].forEach((part, i) => {
      part.style.minHeight = `${Math.max(...heights.map((height) => height[i]))}px`;
    });
  }
  function reserve() {
    begin();
    callOffKeeping();
    if (measuredFor === reservedFor) return;
    if (heights.length === count) keepRoom();
    else callOffKeeping = afterPaint(keepRoom);
  }
  function end() {
    callOff();
    callOffKeeping();
    watch.disconnect();
    watchWidth.disconnect();
  }
  return { prepare, reserve, end };
}
