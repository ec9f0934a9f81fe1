// Flow: multi-head attention step by step, each number traced to those it was computed from.

import { createHeadChoice, createPlayer, createSequence } from "./flow_controls.js";
import { createMatrix } from "./flow_matrix.js";
import { computeAll } from "./flow_numbers.js";
import { formula, MATRICES, STEPS, sayOrigin, sayStep, sayWhere } from "./flow_words.js";
import { divisors } from "./shared/attention.js";
import { element } from "./shared/dom.js";
import {
  createCheckbox,
  createControls,
  createHeading,
  createLive,
  createNote,
  createSlider,
  createWeightsLegend,
  createWidget,
} from "./shared/parts.js";
import { readerOf, redrawOn, setterOf } from "./shared/state.js";
import { tellApart } from "./shared/token_map.js";

const TRAITS = ["matrix", "place", "num_heads", "causal", "sequence"];

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [T, d] = [read.whole("T", 6), read.whole("d", 6)];
  const given = { x: read.numbers("x", T * d) };
  for (const name of ["w_q", "w_k", "w_v", "w_o"]) given[name] = read.numbers(name, d * d);
  const tokens = read.texts("tokens", T);
  const sequence = read.indices("sequence", T, "tokens", T).slice(0, T);
  const rows = sequence.flatMap((i) => [...given.x.subarray(i * d, (i + 1) * d)]);
  const heads = divisors(d);
  const isNumHeads = (number) => heads.includes(number);
  const isPlace = (number) => Number.isInteger(number) && number >= 0;
  return {
    T,
    d,
    tokens,
    sequence,
    given: { ...given, x: Float64Array.from(rows) },
    numHeads: read.read("num_heads", isNumHeads, `one of ${heads.join(", ")}`),
    causal: Boolean(model.get("causal")),
    matrix: read.read("matrix", (name) => Object.hasOwn(MATRICES, name), "the name of a matrix"),
    place: read.list("place", isPlace, "whole numbers from 0", 3),
    origin: read.text("origin"),
  };
}

/** The step that makes a matrix, or needs a given one. */
function stepOf(matrix) {
  const made = STEPS.findIndex(({ makes }) => makes === matrix);
  return made < 0 ? STEPS.findIndex(({ of }) => of.includes(matrix)) : made;
}

/** The place in a matrix that is nearest to another: its row, head and column in that head. */
function nearest([row, head, column], { values, columns, parts, width }) {
  const most = [values.length / columns, parts, width];
  return [row, head, column].map((number, i) => Math.min(number, most[i] - 1));
}

function render({ model, el }) {
  const { d, tokens, origin } = readState(model);
  const set = setterOf(model);
  const steps = createSlider("Step", {
    max: STEPS.length - 1,
    choose(step) {
      player.stop();
      reserveRoom();
      show(step);
    },
  });
  const counts = divisors(d);
  const heads = createSlider("Heads", {
    max: counts.length - 1,
    choose: (i) => set("num_heads", counts[i]),
    ticks: counts.map(String),
  });
  const causal = createCheckbox("Causal", (checked) => set("causal", checked));
  const sequence = createSequence(tokens, (place, token) =>
    set("sequence", readState(model).sequence.with(place, token)),
  );
  const live = createLive();
  const player = createPlayer({
    isLast: () => stepOf(model.get("matrix")) === STEPS.length - 1,
    start: () => show(0),
    go,
    told(isPlaying) {
      live.setAttribute("aria-live", isPlaying ? "off" : "polite");
      if (isPlaying) reserveRoom();
    },
  });
  const table = element("div", { class: "attn-stage" });
  const stage = element("div", { class: "attn-told-stage" }, table, live);
  const legend = createWeightsLegend(
    ["attn-traced", "this number"],
    ["attn-source", "what it is computed from"],
  );
  const root = createWidget(
    "flow",
    "Multi-head attention, step by step",
    createNote(`Numbers: ${origin}. Press any number to see what it was computed from.`),
    createControls(element("div", { class: "attn-row" }, ...player.nodes), steps.node),
    createControls(heads.node, causal.node, sequence.node),
    stage,
    legend,
  );
  let built = null; // what the tables were made for
  let matrices = {}; // by name, those that are shown
  let headChoice = null;
  let reserved = null; // what room is reserved for

  function show(step) {
    set("matrix", STEPS[step].makes);
  }
  function go(by) {
    const step = stepOf(model.get("matrix")) + by;
    if (!(step in STEPS)) return;
    reserveRoom();
    show(step);
  }

  const focusTraced = () => table.querySelector(".attn-traced button").focus();

  /** Trace a number: here, or in the step that made it. */
  function press(name, { columns, width }, i) {
    player.stop();
    const inRow = i % columns;
    set("place", [Math.floor(i / columns), Math.floor(inRow / width), inRow % width]);
    set("matrix", name);
    focusTraced();
  }
  table.addEventListener("keydown", (event) => {
    const by = { PageUp: -1, PageDown: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    player.stop();
    go(by);
    focusTraced();
  });

  /** The step's matrices; they are made again where more changes than what is traced. */
  function build(state, all) {
    const step = STEPS[stepOf(state.matrix)];
    const made = JSON.stringify([step, state.numHeads, state.causal, state.sequence]);
    if (made === built) return;
    const appears = built === null ? "" : "attn-appears";
    built = made;
    matrices = Object.fromEntries(
      [...step.of, step.makes].map((name) => {
        const options = { ...state, press: (i) => press(name, all[name], i) };
        return [name, createMatrix(name, all[name], options)];
      }),
    );
    const heading = createHeading(element("strong", {}, step.name), " ");
    heading.append(...formula(step.formula));
    const operands = step.of.flatMap((name) => matrices[name].nodes);
    headChoice = createHeadChoice(all[step.makes].parts, (head) => {
      player.stop();
      set("place", model.get("place").with(1, head));
    });
    headChoice.node.hidden =
      state.numHeads === 1 || !Object.keys(matrices).some((name) => MATRICES[name].apart);
    table.replaceChildren(
      heading,
      createNote(sayStep(step.makes, state)),
      headChoice.node,
      element("div", { class: "attn-operands" }, ...operands),
      element("div", { class: `attn-made ${appears}` }, ...matrices[step.makes].nodes),
    );
  }

  function draw(matrix = model.get("matrix")) {
    const read = { ...readState(model), matrix };
    const tokenAt = tellApart(read.sequence.map((i) => tokens[i]));
    const state = { ...read, tokenAt, width: d / read.numHeads };
    const all = computeAll(state);
    build(state, all);
    const place = nearest(state.place, all[matrix]);
    const traced = place[0] * all[matrix].columns + place[1] * all[matrix].width + place[2];
    const sources = all[matrix].terms(traced).flat();
    for (const [name, { mark }] of Object.entries(matrices)) {
      const places = sources.filter(([from]) => from === name).map(([, i]) => i);
      mark(name === matrix ? traced : null, places, place[1]);
    }
    headChoice.press(place[1]);
    const sum = element("span", { dir: "ltr" }, ...sayOrigin(all, matrix, traced, state.width));
    live.replaceChildren(...sayWhere(matrix, place, state), sum);
    legend.firstChild.style.visibility = "weights" in matrices ? "visible" : "hidden";
    const step = stepOf(matrix);
    steps.draw(step, `${step + 1} of ${STEPS.length}: ${STEPS[step].name}`);
    player.draw(step);
    heads.draw(counts.indexOf(state.numHeads), `${state.numHeads} of width ${state.width}`);
    causal.draw(state.causal);
    sequence.draw(state.sequence);
  }

  /**
   * Let the stage be as tall as its tallest step, and the sentence as its longest, so that nothing
   * moves from step to step.
   */
  function reserveRoom() {
    const { numHeads, causal: isCausal, sequence: places } = readState(model);
    const needed = JSON.stringify([stage.clientWidth, numHeads, isCausal, places]);
    if (needed === reserved) return;
    reserved = needed;
    const now = model.get("matrix");
    for (const part of [live, stage]) {
      part.style.minHeight = "";
      const heights = STEPS.map(({ makes }) => {
        draw(makes);
        return part.offsetHeight;
      });
      part.style.minHeight = `${Math.max(...heights)}px`;
    }
    draw(now);
  }
  draw();
  el.replaceChildren(root);
  const forget = redrawOn(model, TRAITS, () => draw());
  return () => {
    player.end();
    forget();
  };
}

export default { render };
