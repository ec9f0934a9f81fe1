// Points in the plane: their average and hull, a drawing of the plane with axes, dots with names.

import { element, svgElement } from "../shared/dom.js";
import { roundTicks, withMinus } from "../shared/numbers.js";

export const SIZE = 320; // width of a plane's drawing, in units of its own
const EDGE = 26; // around the plane, for the numbers of its axes
export const TOP = 16; // of what is shown; no numbers stand above the plane
export const HEIGHT = 298;
const LARGEST_DOT = 13; // radius of a dot that has all the weight

/** The average of points, each with its weight. */
export function mix(weights, points) {
  return [0, 1].map((c) => points.reduce((sum, point, j) => sum + weights[j] * point[c], 0));
}

/** The corners of the convex hull of points, counterclockwise (Andrew's monotone chain). */
export function convexHull(points) {
  const order = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const chain = (path) => {
    const kept = [];
    for (const [x, y] of path) {
      while (kept.length >= 2) {
        const [[ax, ay], [bx, by]] = kept.slice(-2);
        if ((bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0) break;
        kept.pop();
      }
      kept.push([x, y]);
    }
    return kept.slice(0, -1);
  };
  return [...chain(order), ...chain(order.reverse())];
}

/** A square drawing of the plane around `center`, with axes; places points on it. */
export function createPlane(center, reach, title) {
  const unit = (SIZE - 2 * EDGE) / (2 * reach);
  const place = ([x, y]) => [SIZE / 2 + (x - center[0]) * unit, SIZE / 2 - (y - center[1]) * unit];
  const toPoint = (px, py) => [
    center[0] + (px - SIZE / 2) / unit,
    center[1] - (py - SIZE / 2) / unit,
  ];
  const svg = svgElement("svg", {
    viewBox: `0 ${TOP} ${SIZE} ${HEIGHT}`,
    role: "img",
    "aria-label": title,
  });
  const inner = { x: EDGE, y: EDGE, width: SIZE - 2 * EDGE, height: SIZE - 2 * EDGE };
  svg.append(svgElement("rect", { ...inner, class: "attn-frame" }));
  const ticks = (middle) => roundTicks(middle - reach, middle + reach, 6);
  const number = (value) => withMinus(Number(value.toPrecision(4)));
  for (const x of ticks(center[0])) {
    const [px] = place([x, 0]);
    const line = { x1: px, x2: px, y1: EDGE, y2: SIZE - EDGE };
    if (x === 0) svg.append(svgElement("line", { ...line, class: "attn-axis" }));
    const at = { x: px, y: SIZE - EDGE + 14, "text-anchor": "middle", class: "attn-tick" };
    svg.append(svgElement("text", at, number(x)));
  }
  for (const y of ticks(center[1])) {
    const [, py] = place([0, y]);
    const line = { x1: EDGE, x2: SIZE - EDGE, y1: py, y2: py };
    if (y === 0) svg.append(svgElement("line", { ...line, class: "attn-axis" }));
    const at = { x: EDGE - 5, y: py + 3.5, "text-anchor": "end", class: "attn-tick" };
    svg.append(svgElement("text", at, number(y)));
  }
  const box = element("div", { class: "attn-plane" }, svg);
  return { box, svg, place, toPoint };
}

/**
 * Dots with names; the area of a dot is its weight. Names keep clear of each other, and of `others`,
 * if they can: they try the places around their dot in the order of `turns`, eighths of a circle
 * from outward.
 */
export function createDots(points, names, plane, { room, turns, others = [] }) {
  const middle = plane.place(
    mix(
      points.map(() => 1 / points.length),
      points,
    ),
  );
  const around = (half, point) => {
    const [x, y] = plane.place(point);
    return [x - half, y - half, x + half, y + half];
  };
  const taken = [
    ...points.map((point) => around(6, point)),
    ...others.map((point) => around(10, point)),
  ];
  const overlap = (a, b) =>
    Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) *
    Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
  const dots = points.map((point, j) => {
    const [x, y] = plane.place(point);
    const outward = Math.atan2(y - middle[1], x - middle[0]);
    const width = 6.6 * (Math.min(names[j].length, 12) + room);
    const boxes = turns.map((turn) => {
      const angle = outward + (turn * Math.PI) / 4;
      const side = Math.max(-1, Math.min(1.5 * Math.cos(angle), 1)); // beside the dot also at 45 degrees
      const left = x + Math.cos(angle) * 17 + (side - 1) * (width / 2);
      const top = y + Math.sin(angle) * 22 - 8;
      const cornerX = Math.max(2, Math.min(left, SIZE - 2 - width));
      const cornerY = Math.max(TOP, Math.min(top, TOP + HEIGHT - 16));
      return [cornerX, cornerY, cornerX + width, cornerY + 16];
    });
    const costs = boxes.map((box) => taken.reduce((sum, other) => sum + overlap(box, other), 0));
    const box = boxes[costs.indexOf(Math.min(...costs))];
    taken.push(box);
    const dot = svgElement("circle", { cx: x, cy: y, class: "attn-dot" });
    const place = { x: (box[0] + box[2]) / 2, y: box[1] + 12, "text-anchor": "middle" };
    const text = svgElement("text", { ...place, class: "attn-name" });
    plane.svg.append(dot, text);
    return { dot, text, name: names[j].length > 12 ? `${names[j].slice(0, 11)}…` : names[j] };
  });
  function draw(weights, describe) {
    dots.forEach(({ dot, text, name }, j) => {
      dot.setAttribute("r", Math.max(2.5, LARGEST_DOT * Math.sqrt(weights[j])));
      text.textContent = describe(name, weights[j]);
    });
  }
  return { draw };
}
