// BuildABlock: how a block is wired, and what was measured in stacks of it.

import { element } from "../shared/dom.js";
import { withMinus } from "../shared/numbers.js";
import {
  createCheckbox,
  createControls,
  createLive,
  createNote,
  createPanels,
  createPanes,
  createSlider,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { createDiagram, createKey, createPanel } from "./figures.js";
import { createSignal, readSignal } from "./signal.js";
import { formula, meaningOf, median, numberText, variantName, WORDS } from "./words.js";

const NORMS = [
  [null, "none"],
  ["pre", "before (pre)"],
  ["post", "after (post)"],
];

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const increases = (depth, i, depths) => Number.isInteger(depth) && depth > (depths[i - 1] ?? 0);
  const depths = read.list("depths", increases, "increasing whole numbers");
  read.read("depth", (depth) => depths.includes(depth), `one of ${depths.join(", ")}`);
  const isNorm = (norm) => NORMS.some(([known]) => known === norm);
  read.read("norm_position", isNorm, "null, pre or post");
  const isVariant = (variant) => isNorm(variant?.[1]);
  const variants = read.list("variants", isVariant, "pairs that end with null, pre or post");
  const isPanel = (panel) => Object.hasOwn(WORDS, panel?.[1]);
  const panels = read.list("panels", isPanel, "pairs that end with size or cosine");
  const [runs] = read.counts("runs");
  const count = variants.length * panels.length * depths.length * runs;
  const values = read.numbers("values", count, { size: 8 });
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
  const isFlag = (value) => typeof value === "boolean";
  const hasSignal = read.read("has_signal", isFlag, "true or false");
  const signal = hasSignal ? readSignal(read, depths) : null;
  return { depths, variants, panels, runs, runsAt, signal };
}

/**
 * Whether a wiring is offered: all are where a signal can be sent through them. Else those that were
 * measured, if one switch after the other leads to each.
 */
function createOffer({ variants, signal }, start) {
  const isSame = ([residual, norm], other) => residual === other[0] && norm === other[1];
  const isNear = ([residual, norm], other) => residual === other[0] || norm === other[1];
  const reached = [start];
  for (const from of reached) {
    const found = variants.filter((one) => isNear(one, from));
    reached.push(...found.filter((one) => !reached.some((other) => isSame(one, other))));
  }
  const isReached = (one) => reached.some((other) => isSame(one, other));
  if (signal || !variants.every(isReached)) return null;
  return (...wiring) => variants.some((one) => isSame(one, wiring));
}

/** Every number, a table a panel, in a fold. */
function createNumbers({ depths, variants, panels, runs, runsAt }) {
  const columns = ["wiring, run", ...depths.map((depth) => `depth ${depth}`)];
  const eachRun = Array.from({ length: runs }, (_, run) => run);
  return createFold(() =>
    panels.map(([name, kind], panel) => {
      const text = (value) =>
        kind === "cosine" ? withMinus(value.toFixed(4)) : withMinus(value.toExponential(2));
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

/** Residual, norm and depth; `isOffered(residual, norm)` tells which wirings can be chosen. */
function createChoices(depths, isOffered, { chooseResidual, chooseNorm, chooseDepth }) {
  const checkbox = createCheckbox("Residual connection", chooseResidual);
  const radios = NORMS.map(([norm]) => {
    const radio = element("input", { type: "radio", name: "norm" });
    radio.addEventListener("change", () => chooseNorm(norm));
    return radio;
  });
  const choices = NORMS.map(([, text], i) => element("label", {}, radios[i], text));
  const norms = element("fieldset", {}, element("legend", {}, "Norm"), ...choices);
  const slider = createSlider("Depth", {
    max: depths.length - 1,
    choose: (position) => chooseDepth(depths[position]),
  });
  // A form keeps the radio buttons of several widgets apart.
  const node = element("form", {}, createControls(checkbox.node, norms, slider.node));
  node.addEventListener("submit", (event) => event.preventDefault());

  function draw(residual, norm, depth) {
    checkbox.draw(residual, isOffered(!residual, norm));
    NORMS.forEach(([known], i) => {
      radios[i].checked = known === norm;
      radios[i].disabled = known !== norm && !isOffered(residual, known);
    });
    slider.draw(depths.indexOf(depth), `${depth} blocks`);
  }
  return { node, draw };
}

function render({ model, el }) {
  const state = readState(model);
  const { depths, variants, panels, runs, runsAt } = state;
  const set = setterOf(model);
  const isOffered = createOffer(state, [model.get("residual"), model.get("norm_position")]);
  const controls = createChoices(depths, isOffered ?? (() => true), {
    chooseResidual: (residual) => set("residual", residual),
    chooseNorm: (norm) => set("norm_position", norm),
    chooseDepth: (depth) => set("depth", depth),
  });
  const [diagram, legend] = [createDiagram(), createKey(variants)];
  const signal =
    state.signal && createSignal(state.signal, { choose: (stop) => set("stop", stop) });
  const plots = panels.map((_, panel) => createPanel(state, panel));
  const live = createLive();
  const keys = [
    runs > 1 && `Each dot is one of ${runs} runs; lines and numbers are their medians.`,
  ];
  keys.push(
    panels.some(([, kind]) => kind === "size") && "Gray: 0.01 to 100, here called healthy.",
  );
  const numbers = createNumbers(state);
  numbers.draw(null, { summary: "All the numbers", label: "All measurements" });
  const root = createWidget(
    "build-a-block",
    "Build a block",
    createNote(
      `Measured: ${model.get("origin")}.`,
      isOffered === null ? "" : " A gray choice leads to a wiring that wasn't measured.",
    ),
    createPanes(
      [element("div", { class: "attn-switches" }, controls.node, live)],
      [
        createPanels(
          element("div", { class: "attn-way" }, diagram.node, ...(signal ? [signal.node] : [])),
          element(
            "div",
            {},
            element("div", { class: "attn-plots" }, ...plots.map(({ node }) => node)),
            legend.node,
            createNote(keys.filter(Boolean).join(" ")),
          ),
        ),
      ],
    ),
    numbers.node,
    ...(signal ? [signal.table] : []),
  );

  const traits = ["residual", "norm_position", "depth"];

  function draw() {
    const [residual, norm, depth] = traits.map((name) => model.get(name));
    const chosen = variants.findIndex(([r, n]) => r === residual && n === norm);
    const d = depths.indexOf(depth);
    controls.draw(residual, norm, depth);
    diagram.draw(residual, norm, depth);
    drawSignal();
    plots.forEach((plot) => plot.draw(chosen, d));
    legend.draw(chosen);
    const line = (...parts) => element("span", {}, ...parts);
    const name = element("strong", {}, variantName(residual, norm));
    const wiring = element("code", {}, formula(residual, norm));
    const lines = [line(name, " ", wiring, `, ${depth} blocks`)];
    if (chosen < 0) {
      lines.push(line("No stack wired like this was measured here."));
    } else {
      panels.forEach(([panel, kind], p) => {
        const value = median(runsAt(chosen, p, d));
        const number = element("strong", {}, numberText(value, kind));
        lines.push(line(`${panel}: `, number, ` (${meaningOf(value, kind)})`));
      });
    }
    live.replaceChildren(...lines);
  }

  function drawSignal() {
    if (!signal) return;
    const wiring = traits.map((name) => model.get(name));
    diagram.pointAt(signal.draw(...wiring, model.get("stop")));
  }

  draw();
  el.replaceChildren(root);
  const stops = [redrawOn(model, traits, draw), redrawOn(model, ["stop"], drawSignal)];
  return () => {
    signal?.halt();
    for (const stop of stops) stop();
  };
}

export default { render };
