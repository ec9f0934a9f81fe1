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
  const lines = new Map(); // run -> its path

  function draw(runs, shown) {
    for (const [run, path] of lines) {
      if (runs.includes(run)) continue;
      path.remove();
      lines.delete(run);
    }
    const labels = [];
    for (const run of runs) {
      if (!lines.has(run)) lines.set(run, svg.appendChild(svgElement("path")));
      const path = lines.get(run);
      path.setAttribute("class", run === shown ? "attn-curve attn-current" : "attn-curve");
      const means = smoothed(run.losses);
      const points = means.map((loss, i) => `${(i + 0.5) * MEAN_OF} ${depthOf(loss)}`);
      path.setAttribute("d", points.length > 0 ? `M${points.join("L")}` : "");
      if (means.length > 0)
        labels.push({ run, depth: depthOf(means.at(-1)), at: run.losses.length });
    }
    if (lines.has(shown)) svg.append(lines.get(shown)); // above the others
    names.replaceChildren(...placed(labels).map((label) => nameTag(label, shown)));
    const mean = shown === null ? [] : smoothed(shown.losses);
    const told =
      mean.length > 0 ? `from ${mean[0].toFixed(2)} to ${mean.at(-1).toFixed(3)}` : "none yet";
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

/** Names at the depths of their curves, moved up where two would touch; `top` is where each stands. */
function placed(labels) {
  let below = 1 + APART;
  const fromBelow = labels.sort((a, b) => b.depth - a.depth);
  return fromBelow.map((label) => {
    const top = Math.min(label.depth, below - APART);
    below = top;
    return { ...label, top };
  });
}
