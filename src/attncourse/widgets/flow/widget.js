// Flow: multi-head attention step by step, each number traced to those it was computed from.

import { createArcs } from "../shared/arcs.js";
import { divisors } from "../shared/attention.js";
import { element, write } from "../shared/dom.js";
import { departure, sayDeparture } from "../shared/origins.js";
import {
  createCheckbox,
  createControls,
  createHeading,
  createLive,
  createNote,
  createSlider,
  createWeightsLegend,
  createWidget,
} from "../shared/parts.js";
import { createPlayer } from "../shared/player.js";
import { followerOf, readerOf, setterOf } from "../shared/state.js";
import { tellApart } from "../shared/token_map.js";
import { createHeadChoice, createSequence } from "./controls.js";
import { createMatrix } from "./matrix.js";
import { computeAll, times } from "./numbers.js";
import { createRoom } from "./room.js";
import { formula, MATRICES, STEPS, sayOrigin, sayStep, sayWhere } from "./words.js";

const TRAITS = ["matrix", "place", "num_heads", "causal", "sequence"];
const WITH_ARCS = ["x", "weights", "heads"]; // steps that show what attention comes to
const PAUSE = 2500; // milliseconds for a step, when steps follow by themselves

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
  const isTraining = (value) =>
    isNumHeads(value?.num_heads) && [true, false, null].includes(value.causal);
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
    trained: read.read("trained", isTraining, "num_heads and causal"),
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
  const { d, tokens, origin, trained } = readState(model);
  const set = setterOf(model);
  const follower = followerOf(model);
  const steps = createSlider("Step", {
    max: STEPS.length - 1,
    choose(step) {
      player.stop();
      room.reserve();
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
  const [live, caveat] = [createLive(), element("strong", { role: "status" })];
  const player = createPlayer({
    pause: PAUSE,
    isLast: () => stepOf(model.get("matrix")) === STEPS.length - 1,
    start: () => show(0),
    go,
    onPlayingChange(isPlaying) {
      live.setAttribute("aria-live", isPlaying ? "off" : "polite");
      if (isPlaying) room.reserve();
    },
  });
  const table = element("div", { class: "attn-stage" });
  const stage = element("div", { class: "attn-spoken-stage" }, table, live);
  const legend = createWeightsLegend(
    ["attn-traced", "this number"],
    ["attn-source", "what it is computed from"],
  );
  const playing = createControls(
    element("div", { class: "attn-row" }, ...player.nodes),
    steps.node,
  );
  playing.classList.add("attn-player");
  const choices = createControls(heads.node, causal.node, sequence.node);
  choices.classList.add("attn-choices");
  // The whole way at one glance; the slider says the same to those who hear it.
  const lines = STEPS.map((step) =>
    element("li", {}, step.name, ...formula(step.formula && `: ${step.formula}`)),
  );
  const way = element("ol", { class: "attn-way", "aria-hidden": "true" }, ...lines);
  const root = createWidget(
    "flow",
    "Multi-head attention, step by step",
    createNote(caveat, `Numbers: ${origin}. Press any number to see what it was computed from.`),
    element("div", { class: "attn-steps attn-wide" }, playing, choices, way, stage, legend),
  );
  let built = null; // what the tables were made for
  let shown = null; // the step that stands on the stage
  const room = createRoom(stage, [table, live], {
    count: STEPS.length,
    key() {
      const { numHeads, causal: isCausal, sequence: places } = readState(model);
      return JSON.stringify([numHeads, isCausal, places]);
    },
    fill(step, twinTable, twinSentence) {
      const state = stateAt(STEPS[step].makes);
      twinTable.append(...build(state).nodes);
      twinSentence.append(...tell(state));
    },
  });

  function show(step) {
    set("matrix", STEPS[step].makes);
  }
  function go(by) {
    const step = stepOf(model.get("matrix")) + by;
    if (!(step in STEPS)) return;
    room.reserve();
    show(step);
  }

  const focusTraced = () => table.querySelector(".attn-traced button").focus();

  /** Trace a number: here, or in the step that made it. */
  function press(name, { columns, width }, i) {
    player.stop();
    const inRow = i % columns;
    const place = [Math.floor(i / columns), Math.floor(inRow / width), inRow % width];
    follower.setAll({ place, matrix: name });
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

  /** The state with a step's matrix, all numbers, and the number of it that is traced. */
  function stateAt(matrix) {
    const read = { ...readState(model), matrix };
    const tokenAt = tellApart(read.sequence.map((i) => tokens[i]));
    const state = { ...read, tokenAt, width: d / read.numHeads };
    const all = computeAll(state);
    const place = nearest(state.place, all[matrix]);
    const traced = place[0] * all[matrix].columns + place[1] * all[matrix].width + place[2];
    return { ...state, all, place, traced };
  }

  /** A step: its matrices, and the head that is shown where there is no room for all. */
  function build(state, appears = "") {
    const { all, matrix } = state;
    const step = STEPS[stepOf(matrix)];
    const matrices = Object.fromEntries(
      [...step.of, step.makes].map((name) => {
        const options = { ...state, press: (i) => press(name, all[name], i) };
        return [name, createMatrix(name, all[name], options)];
      }),
    );
    const heading = createHeading(element("strong", {}, step.name), " ");
    heading.append(...formula(step.formula));
    const operands = step.of.flatMap((name) => matrices[name].nodes);
    const headChoice = createHeadChoice(all[step.makes].parts, (head) => {
      player.stop();
      set("place", model.get("place").with(1, head));
    });
    headChoice.node.hidden =
      state.numHeads === 1 || !Object.keys(matrices).some((name) => MATRICES[name].apart);
    const looks = WITH_ARCS.includes(step.makes) ? createLooks(state) : null;
    const nodes = [
      heading,
      createNote(sayStep(step.makes, state)),
      headChoice.node,
      element("div", { class: "attn-operands" }, ...operands),
      element(
        "div",
        { class: `attn-made ${appears}` },
        ...matrices[step.makes].nodes,
        ...(looks ? [looks.node] : []),
      ),
    ];
    const parts = { matrices, headChoice, looks, nodes };
    mark(parts, state);
    return parts;
  }

  /** The sentence with arcs: where a token looks in the end. */
  function createLooks({ sequence, tokenAt }) {
    const arcs = createArcs();
    const heading = createHeading();
    const words = sequence.map((i) => element("bdi", {}, tokens[i]));
    arcs.show(words);
    function draw({ all: { weights }, place: [from], T, numHeads }) {
      const begin = (head) => (from * numHeads + head) * T;
      const rows = times(numHeads, (head) => ({
        head,
        name: head + 1,
        row: weights.values.subarray(begin(head), begin(head) + T),
      }));
      words.forEach((word, i) => word.classList.toggle("attn-query", i === from));
      const name = element("bdi", { class: "attn-query" }, tokenAt(from));
      heading.replaceChildren("Where ", name, " looks, a color for each head");
      arcs.drawRows(
        sequence.map((_, i) => tokenAt(i)),
        from,
        rows,
      );
    }
    return { node: element("div", { class: "attn-outlook" }, heading, arcs.node), draw };
  }

  /** Frame the traced number and those that it was computed from. */
  function mark({ matrices, headChoice, looks }, state) {
    const { all, matrix, place, traced } = state;
    looks?.draw(state);
    const sources = all[matrix].terms(traced).flat();
    for (const [name, { mark: markIn }] of Object.entries(matrices)) {
      const places = sources.filter(([from]) => from === name).map(([, i]) => i);
      markIn(name === matrix ? traced : null, places, place[1]);
    }
    headChoice.press(place[1]);
  }

  /** What is traced, in words and numbers. */
  function tell(state) {
    const { all, matrix, place, traced, width } = state;
    const sum = element("span", { dir: "ltr" }, ...sayOrigin(all, matrix, traced, width));
    return [...sayWhere(matrix, place, state), sum];
  }

  function draw() {
    const state = stateAt(model.get("matrix"));
    const step = stepOf(state.matrix);
    const made = JSON.stringify([step, state.numHeads, state.causal, state.sequence]);
    if (made === built) {
      mark(shown, state);
    } else {
      shown = build(state, built === null ? "" : "attn-appears");
      table.replaceChildren(...shown.nodes);
      built = made;
    }
    live.replaceChildren(...tell(state));
    legend.firstChild.style.visibility = "weights" in shown.matrices ? "visible" : "hidden";
    lines.forEach((line, i) => line.classList.toggle("attn-now", i === step));
    steps.draw(step, `${step + 1} of ${STEPS.length}: ${STEPS[step].name}`);
    player.draw(step === 0);
    heads.draw(counts.indexOf(state.numHeads), `${state.numHeads} of width ${state.width}`);
    causal.draw(state.causal);
    write(caveat, sayDeparture(departure(trained, state.numHeads, state.causal)));
    sequence.draw(state.sequence);
    room.prepare();
  }

  draw();
  el.replaceChildren(root);
  const forget = follower.on(TRAITS, draw);
  return () => {
    player.end();
    room.end();
    forget();
  };
}

export default { render };
