// BuildABlock's drawings: the diagram of a block, and the curves over depth.

import { useHeadColor } from "../shared/color.js";
import { element, svgElement } from "../shared/dom.js";
import { roundTicks, withMinus } from "../shared/numbers.js";
import { createLegend } from "../shared/parts.js";
import { HEALTHY, median, variantName } from "./words.js";

// The diagram: tokens run upwards. Each part has its place, so that a switch moves no other part.

const [SPINE, SIDE, SLOT, BOTTOM] = [66, 138, 22, 292];
const PART_COLORS = { norm: 2, attention: 3, "feed-forward": 0 }; // as in attncourse.lessons.l05.figures.blocks

function part(name, y) {
  const box = svgElement("rect", { x: SPINE - 48, y: y - 9, width: 96, height: 18, rx: 5 });
  const text = svgElement("text", { x: SPINE, y: y + 4 }, name);
  const node = svgElement("g", { class: "attn-part" }, box, text);
  useHeadColor(node, PART_COLORS[name]);
  return node;
}

function skip(from, to) {
  const line = `M${SPINE} ${from}H${SIDE}V${to}H${SPINE + 12}m6 -4l-6 4l6 4`;
  const node = svgElement(
    "g",
    { class: "attn-skip" },
    svgElement("path", { d: line }),
    svgElement("circle", { cx: SPINE, cy: to, r: 9 }),
    svgElement("path", { d: `M${SPINE - 5} ${to}h10m-5 -5v10` }),
    svgElement("text", { x: SIDE + 5, y: (from + to) / 2 + 4 }, "x"),
  );
  useHeadColor(node, 4);
  return node;
}

export function createDiagram() {
  const node = svgElement("svg", { class: "attn-diagram", viewBox: "0 0 160 342", role: "img" });
  const dot = svgElement("circle", { class: "attn-signal", cx: 0, cy: 0 });

  /** Put the signal after the part that it has passed; the larger it is, the larger its dot. */
  function pointAt({ layer, slot, size }) {
    const [inside, after] = [BOTTOM - (5 * layer + slot) * SLOT, SLOT / 2];
    const y = layer === 2 ? 46 - after : slot === 0 ? BOTTOM + 26 : inside - after;
    dot.setAttribute("r", Math.max(1.5, Math.min(5.5, 3.5 + Math.log10(size))));
    dot.style.transform = `translate(${SPINE}px, ${y}px)`;
  }

  function draw(residual, norm, depth) {
    const spine = `M${SPINE} 326V18m-4 7l4 -7l4 7`;
    const shapes = [
      svgElement("rect", { class: "attn-frame", x: 4, y: 74, width: 152, height: 234, rx: 8 }),
      svgElement("path", { class: "attn-spine", d: spine }),
    ];
    const words = [];
    for (const [i, layer] of ["attention", "feed-forward"].entries()) {
      const y = (slot) => BOTTOM - (5 * i + slot) * SLOT;
      const addNorm = (slot) => shapes.push(part("norm", y(slot)));
      if (residual) shapes.push(skip(y(0), y(3)));
      if (norm === "pre") addNorm(1);
      shapes.push(part(layer, y(2)));
      if (norm === "post") addNorm(4);
      words.push(residual && "a copy of x steps aside", norm === "pre" && "norm", layer);
      words.push(residual && "x is added", norm === "post" && "norm");
    }
    if (norm === "pre") shapes.push(part("norm", 46));
    const label = (x, y, text) => svgElement("text", { x, y }, text);
    shapes.push(label(SPINE + 10, 16, "tokens out"), label(SPINE + 10, 332, "tokens in"));
    shapes.push(label(128, 68, `× ${depth}`));
    node.replaceChildren(...shapes, dot);
    const last = norm === "pre" ? " and one last norm" : "";
    const way = words.filter(Boolean).join(", ");
    const stack = `${depth} blocks${last}`;
    node.setAttribute("aria-label", `On a token's way up a block: ${way}. ${stack}.`);
  }
  return { node, draw, pointAt };
}

// The curves.

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, FLOOR] = [240, 190, 36, 234, 10, 152];
const MARKERS = [
  "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
  "M-2.7 -2.7h5.4v5.4h-5.4z",
  "M0 -3.8l3.8 3.8l-3.8 3.8l-3.8 -3.8z",
  "M0 -3.6l3.6 6.4h-7.2z",
  "M0 3.6l3.6 -6.4h-7.2z",
  "M-1.2 -3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z",
];

function powerOfTen(exponent) {
  if (exponent === 0) return "1";
  return `10${String(exponent).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)])}`;
}

/** The vertical axis of a panel: {ticks: [[value, text]], at: value -> share of the height}. */
function createAxis(kind, numbers) {
  let [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (kind === "cosine") {
    const from = low < 0 ? -1 : 0;
    const ticks = [0, 1, 2, 3, 4].map((i) => from + (i * (1 - from)) / 4);
    const at = (value) => (value - from) / (1 - from);
    return { at, ticks: ticks.map((value) => [value, withMinus(value)]) };
  }
  low = Math.floor(Math.log10(low));
  high = Math.max(Math.ceil(Math.log10(high)), low + 1);
  const exponents = roundTicks(low, high, Math.min(6, high - low)); // whole numbers
  const at = (value) => (Math.log10(value) - low) / (high - low);
  return { at, ticks: exponents.map((exponent) => [10 ** exponent, powerOfTen(exponent)]) };
}

export function createPanel({ depths, variants, panels, runsAt }, panel) {
  const [name, kind] = panels[panel];
  const every = variants.map((_, v) => depths.map((__, d) => [...runsAt(v, panel, d)]));
  const axis = createAxis(kind, every.flat(2));
  const doublings = (depth) => Math.log2(depth / depths[0]);
  const x = (depth) =>
    LEFT + 8 + ((RIGHT - LEFT - 16) * doublings(depth)) / doublings(depths.at(-1));
  const y = (value) => FLOOR - axis.at(value) * (FLOOR - TOP);

  const axes = svgElement("g", { class: "attn-axes" });
  if (kind === "size") {
    const [bottom, top] = HEALTHY.map((value) => Math.min(FLOOR, Math.max(TOP, y(value))));
    const band = { x: LEFT, y: top, width: RIGHT - LEFT, height: bottom - top };
    axes.append(svgElement("rect", { class: "attn-band", ...band }));
  }
  for (const [value, text] of axis.ticks) {
    axes.append(svgElement("path", { d: `M${LEFT} ${y(value)}H${RIGHT}` }));
    axes.append(svgElement("text", { class: "attn-tick-y", x: LEFT - 5, y: y(value) + 4 }, text));
  }
  for (const depth of depths) {
    const below = { class: "attn-tick-x", x: x(depth), y: FLOOR + 16 };
    axes.append(svgElement("text", below, String(depth)));
  }
  const middle = { class: "attn-tick-x", x: (LEFT + RIGHT) / 2, y: HEIGHT - 6 };
  axes.append(svgElement("text", middle, "depth (blocks)"));

  const curves = every.map((rows, v) => {
    const line = rows.map((runs, d) => `${x(depths[d])},${y(median(runs))}`).join(" ");
    const medians = svgElement("polyline", { points: line });
    const curve = svgElement("g", { class: "attn-curve" }, medians);
    rows.forEach((runs, d) =>
      curve.append(
        ...runs.map((value) =>
          svgElement("path", {
            d: MARKERS[v % MARKERS.length],
            transform: `translate(${x(depths[d])} ${y(value)})`,
          }),
        ),
      ),
    );
    useHeadColor(curve, v);
    return curve;
  });
  const here = svgElement("path", { class: "attn-here" });
  const ring = svgElement("circle", { class: "attn-ring", r: 7 });
  const chart = svgElement("svg", { class: "attn-chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", `${name} over depth; the numbers are in the tables below`);
  const node = element("div", {}, element("p", { class: "attn-panel-title" }, name), chart);

  function draw(chosen, d) {
    here.setAttribute("d", `M${x(depths[d])} ${TOP}V${FLOOR}`);
    curves.forEach((curve, v) => curve.classList.toggle("attn-chosen", v === chosen));
    chart.replaceChildren(axes, here, ...curves);
    if (chosen < 0) return;
    ring.setAttribute("cx", x(depths[d]));
    ring.setAttribute("cy", y(median(every[chosen][d])));
    chart.append(curves[chosen], ring); // moved to the end: what is drawn last lies on top
  }
  return { node, draw };
}

/** Which marker is which wiring. */
export function createKey(variants) {
  const entries = variants.map(([residual, norm], v) => {
    const marker = svgElement("path", { d: MARKERS[v % MARKERS.length] });
    const icon = svgElement("svg", { class: "attn-icon", viewBox: "-5 -5 10 10" }, marker);
    useHeadColor(icon, v);
    return [icon, variantName(residual, norm)];
  });
  const node = createLegend(...entries);
  node.setAttribute("aria-hidden", "true");
  function draw(chosen) {
    [...node.children].forEach((entry, v) => entry.classList.toggle("attn-chosen", v === chosen));
  }
  return { node, draw };
}
