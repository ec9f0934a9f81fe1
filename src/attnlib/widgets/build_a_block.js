// BuildABlock: how a block is wired, and what was measured in stacks of it.

import { createDiagram, createLegend, createPanel } from "./build_a_block_figures.js";
import {
  formula,
  meaningOf,
  median,
  numberText,
  variantName,
  WORDS,
} from "./build_a_block_words.js";
import { element } from "./shared/dom.js";
import { createWidget } from "./shared/parts.js";
import { readNumbers, redrawOn, setterOf } from "./shared/state.js";
import { createFold, createTable } from "./shared/tables.js";

const NORMS = [
  [null, "none"],
  ["pre", "before (pre)"],
  ["post", "after (post)"],
];

/** The widget's state, checked: it may come from a file that somebody has edited. */
export function readState(model) {
  const [depths, variants, panels] = ["depths", "variants", "panels"].map((name) => {
    const list = model.get(name);
    if (!Array.isArray(list) || !list.length)
      throw new Error(`${name} should be a list, but isn't`);
    return list;
  });
  if (!depths.every((depth, i) => Number.isInteger(depth) && depth > (depths[i - 1] ?? 0))) {
    throw new Error(`depths should be increasing whole numbers, but are ${depths}`);
  }
  if (!depths.includes(model.get("depth"))) {
    throw new Error(`depth should be one of ${depths}, but is ${model.get("depth")}`);
  }
  for (const norm of [model.get("norm_position"), ...variants.map((variant) => variant?.[1])]) {
    if (NORMS.every(([known]) => known !== norm)) {
      throw new Error(`norm_position should be null, pre or post, but is ${norm}`);
    }
  }
  const runs = model.get("runs");
  if (!Number.isInteger(runs) || runs < 1)
    throw new Error(`runs should be 1 or more, but is ${runs}`);
  const strange = panels.find((panel) => !Object.hasOwn(WORDS, panel?.[1]));
  if (strange) throw new Error(`a panel should show size or cosine, but one is ${strange}`);
  const count = variants.length * panels.length * depths.length * runs;
  const values = readNumbers("values", model.get("values"), count, { size: 8 });
  /** All runs of one measurement. */
  const runsAt = (variant, panel, depth) => {
    const first = ((variant * panels.length + panel) * depths.length + depth) * runs;
    return values.subarray(first, first + runs);
  };
  panels.forEach(([name, kind], panel) => {
    const all = variants.flatMap((_, v) => depths.flatMap((__, d) => [...runsAt(v, panel, d)]));
    if (kind === "size" && Math.min(...all) <= 0) {
      throw new Error(`${name} should be above 0, but is ${Math.min(...all)}`);
    }
  });
  return { depths, variants, panels, runs, runsAt };
}

/** Every number, a table a panel, in a fold. */
function createNumbers({ depths, variants, panels, runs, runsAt }) {
  const columns = ["wiring, run", ...depths.map((depth) => `depth ${depth}`)];
  const eachRun = Array.from({ length: runs }, (_, run) => run);
  return createFold(() =>
    panels.map(([name, kind], panel) => {
      const text = (value) => (kind === "cosine" ? value.toFixed(4) : value.toExponential(2));
      const rows = variants.flatMap((variant, v) =>
        eachRun.map((run) => [
          `${variantName(...variant)}, ${run + 1}`,
          ...depths.map((_, d) => text(runsAt(v, panel, d)[run])),
        ]),
      );
      return createTable(name, columns, rows);
    }),
  );
}

function createControls(depths, { chooseResidual, chooseNorm, chooseDepth }) {
  const checkbox = element("input", { type: "checkbox" });
  checkbox.addEventListener("change", () => chooseResidual(checkbox.checked));
  const radios = NORMS.map(([norm]) => {
    const radio = element("input", { type: "radio", name: "norm" });
    radio.addEventListener("change", () => chooseNorm(norm));
    return radio;
  });
  const slider = element("input", { type: "range", min: 0, max: depths.length - 1, step: 1 });
  slider.addEventListener("input", () => chooseDepth(depths[slider.valueAsNumber]));
  const reading = element("span", { class: "attn-reading", "aria-hidden": "true" });
  const choices = NORMS.map(([, text], i) => element("label", {}, radios[i], text));
  // A form keeps the radio buttons of several widgets apart.
  const node = element(
    "form",
    { class: "attn-controls" },
    element("label", {}, checkbox, "Residual connection"),
    element("fieldset", {}, element("legend", {}, "Norm"), ...choices),
    element("label", { class: "attn-slider" }, element("span", {}, "Depth"), slider, reading),
  );
  node.addEventListener("submit", (event) => event.preventDefault());

  function draw(residual, norm, depth) {
    checkbox.checked = residual;
    NORMS.forEach(([known], i) => (radios[i].checked = known === norm));
    slider.value = depths.indexOf(depth);
    slider.setAttribute("aria-valuetext", `${depth} blocks`);
    reading.textContent = `${depth} blocks`;
  }
  return { node, draw };
}

function render({ model, el }) {
  const state = readState(model);
  const { depths, variants, panels, runs, runsAt } = state;
  const set = setterOf(model);
  const controls = createControls(depths, {
    chooseResidual: (residual) => set("residual", residual),
    chooseNorm: (norm) => set("norm_position", norm),
    chooseDepth: (depth) => set("depth", depth),
  });
  const [diagram, legend] = [createDiagram(), createLegend(variants)];
  const plots = panels.map((_, panel) => createPanel(state, panel));
  const live = element("output", { class: "attn-live", "aria-live": "polite" });
  const keys = [
    runs > 1 && `Each dot is one of ${runs} runs, lines and numbers are their medians.`,
  ];
  keys.push(
    panels.some(([, kind]) => kind === "size") && "Gray: 0.01 to 100, here called healthy.",
  );
  const numbers = createNumbers(state);
  numbers.draw(null, { summary: "All the numbers", label: "All measurements" });
  const root = createWidget(
    "build-a-block",
    "Build a block",
    element("p", { class: "attn-note" }, `Measured: ${model.get("origin")}.`),
    controls.node,
    element(
      "div",
      { class: "attn-panels" },
      diagram.node,
      element(
        "div",
        {},
        live,
        element("div", { class: "attn-plots" }, ...plots.map(({ node }) => node)),
        legend.node,
        element("p", { class: "attn-note" }, keys.filter(Boolean).join(" ")),
      ),
    ),
    numbers.node,
  );

  const traits = ["residual", "norm_position", "depth"];

  function draw() {
    const [residual, norm, depth] = traits.map((name) => model.get(name));
    const chosen = variants.findIndex(([r, n]) => r === residual && n === norm);
    const d = depths.indexOf(depth);
    controls.draw(residual, norm, depth);
    diagram.draw(residual, norm, depth);
    plots.forEach((plot) => plot.draw(chosen, d));
    legend.draw(chosen);
    const line = (...parts) => element("span", {}, ...parts);
    const name = element("strong", {}, variantName(residual, norm));
    const wiring = element("code", {}, formula(residual, norm));
    const lines = [line(name, " ", wiring, `, ${depth} blocks`)];
    if (chosen < 0) {
      lines.push(line("Not measured: there are no runs of a stack wired like this."));
    } else {
      panels.forEach(([panel, kind], p) => {
        const value = median(runsAt(chosen, p, d));
        const number = element("strong", {}, numberText(value, kind));
        lines.push(line(`${panel}: `, number, ` (${meaningOf(value, kind)})`));
      });
    }
    live.replaceChildren(...lines);
  }

  draw();
  el.replaceChildren(root);
  return redrawOn(model, traits, draw);
}

export default { render };
