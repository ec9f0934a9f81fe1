// HeadLab's loss, step by step, on a scale on which each line is half of the one above or less.

import { element, svgElement } from "./shared/dom.js";
import { createHeading } from "./shared/parts.js";

const TICKS = [2, 1, 0.5, 0.2, 0.1, 0.05, 0.02];
const [HIGHEST, LOWEST] = [3, 0.015];
const MEAN_OF = 10; // steps; the loss of a single batch jumps

/** How far down a loss is drawn, from 0 to 1. */
export function depthOf(loss) {
  const share = Math.log(HIGHEST / loss) / Math.log(HIGHEST / LOWEST);
  return Math.max(0, Math.min(1, share));
}

/** Mean losses of ten steps each. */
export function smoothed(losses) {
  const count = Math.floor(losses.length / MEAN_OF);
  return Array.from({ length: count }, (_, i) => {
    const own = losses.slice(i * MEAN_OF, (i + 1) * MEAN_OF);
    return own.reduce((a, b) => a + b) / MEAN_OF;
  });
}

export function headsInWords(count) {
  return `${count} ${count === 1 ? "head" : "heads"}`;
}

/** The curves of all runs, of which one is drawn strongly. */
export function createCurves(steps) {
  const svg = svgElement("svg", { viewBox: `0 0 ${steps} 1`, preserveAspectRatio: "none" });
  const names = element("div", { class: "attn-curve-names" });
  const grid = TICKS.map((tick) => {
    const line = svgElement("path", { class: "attn-grid-line", d: `M0 ${depthOf(tick)}h${steps}` });
    svg.append(line);
    const label = element("span", {}, String(tick).replace(/^0/, ""));
    label.style.top = `${100 * depthOf(tick)}%`;
    return label;
  });
  const plot = element("div", { class: "attn-curves" }, svg, names);
  const scale = element("div", { class: "attn-curve-scale" }, ...grid);
  const ends = element(
    "div",
    { class: "attn-curve-ends" },
    element("span", {}, "step 0"),
    element("span", {}, String(steps)),
  );
  const drawing = element("div", { class: "attn-curve-box", role: "img" }, scale, plot, ends);
  const node = element(
    "div",
    {},
    createHeading("Loss: how far the answers are from right"),
    drawing,
  );
  const lines = new Map(); // run -> {path, means, drawn}: how many of its losses are drawn

  /** A run's curve as it stands now. */
  function lineOf(run) {
    if (!lines.has(run)) {
      const path = svg.appendChild(svgElement("path"));
      lines.set(run, { path, means: [], drawn: 0 });
    }
    const line = lines.get(run);
    if (line.drawn === run.losses.length) return line;
    line.drawn = run.losses.length;
    line.means = smoothed(run.losses);
    const points = line.means.map((loss, i) => `${(i + 0.5) * MEAN_OF} ${depthOf(loss)}`);
    line.path.setAttribute("d", points.length > 0 ? `M${points.join("L")}` : "");
    return line;
  }

  function draw(runs, shown) {
    for (const [run, { path }] of lines) {
      if (runs.includes(run)) continue;
      path.remove();
      lines.delete(run);
    }
    const labels = new Map(); // number of heads -> the name of its newest curve, or the one shown
    for (const run of runs) {
      const { path, means, drawn } = lineOf(run);
      path.setAttribute("class", run === shown ? "attn-curve attn-current" : "attn-curve");
      const isHidden = means.length === 0 || labels.get(run.numHeads)?.run === shown;
      if (!isHidden) labels.set(run.numHeads, { run, depth: depthOf(means.at(-1)), at: drawn });
    }
    const current = lines.get(shown);
    if (current && svg.lastChild !== current.path) svg.append(current.path); // above the others
    names.replaceChildren(...placed([...labels.values()]).map((label) => nameTag(label, shown)));
    const [first, last] = [current?.means[0], current?.means.at(-1)];
    const told = last ? `from ${first.toFixed(2)} to ${last.toFixed(3)}` : "none yet";
    drawing.setAttribute("aria-label", `Loss over ${steps} steps: ${told}`);
  }

  /** A curve's name, at its end. */
  function nameTag({ run, top, at }, shown) {
    const tag = element("span", {}, headsInWords(run.numHeads));
    tag.classList.toggle("attn-current", run === shown);
    tag.style.top = `${100 * top}%`;
    tag.style.right = `${100 * Math.max(0, 1 - at / steps)}%`;
    return tag;
  }
  return { node, draw };
}

const APART = 0.13; // of the height, from one name to the next

/** Names at the depths of their curves, moved where two would touch; `top` is where each stands. */
function placed(labels) {
  let below = 1 + APART;
  const fromBelow = labels.sort((a, b) => b.depth - a.depth);
  const tops = fromBelow.map(({ depth }) => (below = Math.min(depth, below - APART)));
  const down = Math.max(0, APART - Math.min(1, ...tops)); // the first name stays below the edge
  return fromBelow.map((label, i) => ({ ...label, top: tops[i] + down }));
}
