// What each head adds to one token's output: the sums, and their drawing as stacked bars.

import { useHeadColor } from "../shared/color.js";
import { element, reachWhileScrolling, svgElement } from "../shared/dom.js";
import { afterPaint } from "../shared/idle.js";
import { roundTicks, withMinus } from "../shared/numbers.js";

// More bars than these jump instead of gliding: a browser would be at it longer than they glide.
const MOST_GLIDING = 512;

/** The terms of one token's output: {values [d], head}, head null for the bias. */
export function termsOf({ h, T, d, parts, bias }, token) {
  const values = (head) => parts.subarray((head * T + token) * d, (head * T + token + 1) * d);
  const heads = Array.from({ length: h }, (_, head) => ({ values: values(head), head }));
  return bias === null ? heads : [{ values: bias, head: null }, ...heads];
}

/** The sum of the terms without those of muted heads, [d]. */
export function sumOf(terms, muted = []) {
  const sum = new Float64Array(terms[0].values.length);
  for (const { values, head } of terms) {
    if (!muted.includes(head)) values.forEach((value, j) => (sum[j] += value));
  }
  return sum;
}

/** The length of a vector. */
export function lengthOf(vector) {
  return Math.hypot(...vector);
}

/**
 * Where each term's bars begin and end, [{from, to} for each number] for each term: positive parts
 * are stacked upwards from 0, negative ones downwards, muted ones have no height.
 */
export function stackBars(terms, muted) {
  const d = terms[0].values.length;
  const [above, below] = [new Float64Array(d), new Float64Array(d)];
  return terms.map(({ values, head }) =>
    Array.from(values, (value, j) => {
      const stack = value >= 0 ? above : below;
      const from = stack[j];
      if (!muted.includes(head)) stack[j] += value;
      return { from, to: stack[j] };
    }),
  );
}

/** A number with three digits that count, written short. */
export function short(number) {
  return withMinus(Number(number.toPrecision(3)));
}

/** Stacked bars, one stack a number of the output, with the sum as dots; sizes in percent. */
export function createPlot(d, termCount) {
  const column = 100 / d;
  const [axis, bars, dots] = ["axis", "bars", "dots"].map((name) =>
    svgElement("g", { class: `attn-${name}` }),
  );
  const svg = svgElement("svg", { class: "attn-bars-plot", role: "img" }, axis, bars, dots);
  const rects = Array.from({ length: termCount }, () =>
    Array.from({ length: d }, (_, j) =>
      svgElement("rect", { x: `${(j + 0.2) * column}%`, width: `${0.6 * column}%` }),
    ),
  );
  const glides = termCount * d <= MOST_GLIDING;
  svg.classList.toggle("attn-gliding", glides);
  bars.append(...rects.map((row) => svgElement("g", {}, ...row)));
  const marks = Array.from({ length: d }, (_, j) => {
    const at = `${(j + 0.5) * column}%`;
    return {
      shift: svgElement("line", { class: "attn-shift", x1: at, x2: at }),
      ghost: svgElement("circle", { class: "attn-ghost", cx: at }),
      dot: svgElement("circle", { class: "attn-dot", cx: at }),
    };
  });
  for (const layer of ["shift", "ghost", "dot"]) dots.append(...marks.map((mark) => mark[layer]));
  const labels = element("div", { class: "attn-numbers", "aria-hidden": "true" });
  const every = d <= 16 ? 1 : 4;
  labels.append(
    ...Array.from({ length: d }, (_, j) =>
      element("span", {}, (j + 1) % every ? "" : String(j + 1)),
    ),
  );
  const values = element("div", { class: "attn-values", "aria-hidden": "true" });
  const field = element("div", { class: "attn-field" }, values, svg, labels);
  field.style.setProperty("--numbers", d);
  const node = element("div", { class: "attn-scroll" }, field);
  reachWhileScrolling(node, "The bars");

  function drawNow(terms, muted) {
    // The scale is that of all terms, so that nothing else moves when a head leaves.
    const all = stackBars(terms, [])
      .flat()
      .map(({ to }) => to);
    const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
    const margin = 0.06 * (high - low) || 1;
    const [bottom, top] = [low - margin, high + margin];
    const y = (value) => `${(100 * (top - value)) / (top - bottom)}%`;
    const place = (node, attributes) => {
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    };
    stackBars(terms, muted).forEach((stack, t) => {
      const { head } = terms[t];
      if (head !== null) useHeadColor(rects[t][0].parentNode, head);
      stack.forEach(({ from, to }, j) => {
        const height = (100 * Math.abs(to - from)) / (top - bottom);
        place(rects[t][j], { y: y(Math.max(from, to)), height: `${height}%` });
      });
    });
    const [full, left] = [sumOf(terms), sumOf(terms, muted)];
    marks.forEach(({ shift, ghost, dot }, j) => {
      place(shift, { y1: y(full[j]), y2: y(left[j]) });
      place(ghost, { cy: y(full[j]), r: 5 });
      place(dot, { cy: y(left[j]), r: 4 });
    });
    const ticks = roundTicks(bottom, top, 4);
    axis.replaceChildren(
      ...ticks.map((tick) =>
        svgElement("line", {
          x1: 0,
          x2: "100%",
          y1: y(tick),
          y2: y(tick),
          class: tick === 0 ? "attn-zero" : "attn-rule",
        }),
      ),
    );
    values.replaceChildren(
      ...ticks.map((tick) => {
        const text = element("span", {}, short(tick));
        text.style.top = y(tick);
        return text;
      }),
    );
  }

  // Bars that glide don't move in the first frame, but take a browser longer to set off than all
  // else that a click changes: that is seen first.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let isDrawn = false;
  let callOff = () => {};
  function draw(terms, muted) {
    callOff();
    const waits = isDrawn && glides && !still.matches;
    if (waits) callOff = afterPaint(() => drawNow(terms, muted));
    else drawNow(terms, muted);
    isDrawn = true;
  }
  return { node, draw, name: (text) => svg.setAttribute("aria-label", text) };
}
