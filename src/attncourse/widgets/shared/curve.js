// The loss of trainings, step by step.

import { element, svgElement } from "./dom.js";
import { wholeText } from "./numbers.js";
import { createHeading } from "./parts.js";

/**
 * The curves of all runs, one of them drawn strongly, over so many `steps` below a `heading`.
 *
 *   nameOf(run)       its name; of several runs with one name, one curve bears it
 *   seriesOf(run)     a list that grows while the run is trained
 *   pointsOf(series)  the curve of such a list: [step, loss] of each point
 *   depthOf(loss)     how far down a loss is drawn, from 0 to 1
 *   ticks             losses that have a line, named at the left
 *   marks             {name, loss} of others with a line, to hold curves against
 */
export function createCurves({
  steps,
  heading,
  nameOf,
  seriesOf,
  pointsOf,
  depthOf,
  ticks,
  marks = [],
}) {
  const svg = svgElement("svg", { viewBox: `0 0 ${steps} 1`, preserveAspectRatio: "none" });
  const names = element("div", { class: "attn-curve-names" });
  const lineAt = (loss, name) =>
    svg.append(svgElement("path", { class: name, d: `M0 ${depthOf(loss)}h${steps}` }));
  const labelAt = (loss, text) => {
    const label = element("span", {}, text);
    label.style.top = `${100 * depthOf(loss)}%`;
    return label;
  };
  for (const tick of ticks) lineAt(tick, "attn-grid-line");
  for (const { loss } of marks) lineAt(loss, "attn-mark-line");
  const marked = marks.map(({ name, loss }) => labelAt(loss, `${name} ${loss.toFixed(2)}`));
  const grid = ticks.map((tick) => labelAt(tick, String(tick)));
  const plot = element("div", { class: "attn-curves" }, svg, names);
  if (marked.length > 0) plot.append(element("div", { class: "attn-curve-marks" }, ...marked));
  const scale = element("div", { class: "attn-curve-scale" }, ...grid);
  const ends = element(
    "div",
    { class: "attn-curve-ends" },
    element("span", {}, "step 0"),
    element("span", {}, wholeText(steps)),
  );
  const drawing = element("div", { class: "attn-curve-box", role: "img" }, scale, plot, ends);
  const node = element("div", {}, createHeading(heading), drawing);
  const held = marks.map(({ name, loss }) => `; ${name} ${loss.toFixed(2)}`).join("");
  const lines = new Map(); // run -> {path, points, drawn}: how much of its series is drawn

  /** A run's curve as it stands now. */
  function lineOf(run) {
    if (!lines.has(run)) {
      const path = svg.appendChild(svgElement("path"));
      lines.set(run, { path, points: [], drawn: 0 });
    }
    const line = lines.get(run);
    const series = seriesOf(run);
    if (line.drawn === series.length) return line;
    line.drawn = series.length;
    line.points = pointsOf(series);
    const corners = line.points.map(([step, loss]) => `${step} ${depthOf(loss)}`);
    line.path.setAttribute("d", corners.length > 0 ? `M${corners.join("L")}` : "");
    return line;
  }

  function draw(runs, shown) {
    for (const [run, { path }] of lines) {
      if (runs.includes(run)) continue;
      path.remove();
      lines.delete(run);
    }
    const labels = new Map(); // name -> its newest curve, or the one shown
    for (const run of runs) {
      const { path, points } = lineOf(run);
      path.setAttribute("class", run === shown ? "attn-curve attn-current" : "attn-curve");
      const isHidden = points.length === 0 || labels.get(nameOf(run))?.run === shown;
      if (!isHidden) labels.set(nameOf(run), { run, depth: depthOf(points.at(-1)[1]) });
    }
    const current = lines.get(shown);
    if (current && svg.lastChild !== current.path) svg.append(current.path); // above the others
    names.replaceChildren(...placed([...labels.values()]).map((label) => nameTag(label, shown)));
    const [first, last] = [current?.points[0], current?.points.at(-1)];
    const range = last ? `from ${first[1].toFixed(2)} to ${last[1].toFixed(3)}` : "none yet";
    drawing.setAttribute("aria-label", `Loss over ${wholeText(steps)} steps: ${range}${held}`);
  }

  /** A curve's name, at its end. */
  function nameTag({ run, top }, shown) {
    const tag = element("span", {}, nameOf(run));
    tag.classList.toggle("attn-current", run === shown);
    tag.style.top = `${100 * top}%`;
    tag.style.left = `${100 * Math.min(1, run.steps / steps)}%`;
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
  const down = Math.max(0, APART / 2 - Math.min(1, ...tops)); // the first name stays below the edge
  return fromBelow.map((label, i) => ({ ...label, top: tops[i] + down }));
}
