// OnlineSoftmax: a row of scores read block by block, beside the softmax that needs all at once.

import { element, reachWhileScrolling, write } from "../shared/dom.js";
import { createNumberFields, float32Bytes } from "../shared/number_field.js";
import { plainNumber, withMinus } from "../shared/numbers.js";
import {
  createButton,
  createButtonGroup,
  createControls,
  createLive,
  createNote,
  createPanes,
  createQuietButton,
  createSlider,
  createWidget,
} from "../shared/parts.js";
import { createPlayer } from "../shared/player.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { differenceOf, plainSoftmax, stepsOf } from "./steps.js";
import { sayStep, sayVerdict, shortFactor, vectorText } from "./words.js";

const LARGEST = 1000; // score, as in widget.py
const HUGE = 100; // a score whose exponential float32 doesn't hold
const PAUSE = 2500; // milliseconds for a block, when blocks follow by themselves
const METHODS = ["online", "no rescaling", "no maximum"];
const METHOD_NAMES = ["Online softmax", "Without rescaling", "Without subtracting the maximum"];

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [T, d] = [read.whole("T", 12), read.whole("d", 3)];
  const method = read.read(
    "method",
    (name) => METHODS.includes(name),
    `one of ${METHODS.join(", ")}`,
  );
  const block = read.whole("block", T);
  const step = Math.min(read.index("step", T + 1), Math.ceil(T / block));
  const scoresOf = (name) => read.numbers(name, T, { masks: true });
  const scores = scoresOf("scores");
  const start = scoresOf("start_scores");
  const origin = read.text("origin");
  return {
    T,
    d,
    scores,
    start,
    values: read.numbers("values", T * d),
    block,
    step,
    method,
    origin,
  };
}

/** A score's cell: what it counts as a bar, its field, its value. */
function createCell(input, value) {
  const [bar, count] = [element("span", { class: "attn-bar" }), element("span")];
  const room = element("span", { class: "attn-room", "aria-hidden": "true" }, bar);
  const node = element(
    "div",
    { class: "attn-cell" },
    count,
    room,
    input,
    element("span", { class: "attn-value" }, vectorText(value)),
  );
  function draw(number, largest) {
    write(count, number === null ? "" : plainNumber(number));
    const share = number === Infinity ? 1 : (number ?? 0) / largest;
    bar.style.height = `${100 * (Number.isFinite(share) ? share : 0)}%`;
  }
  return { node, draw };
}

/** The scores in their blocks. Cells stay what they are, whichever block they stand in. */
function createBlocks(cells) {
  const node = element("div", { class: "attn-blocks" });
  let size = 0; // of the blocks that stand there

  function arrange(block) {
    size = block;
    const groups = Array.from({ length: Math.ceil(cells.length / block) }, (_, i) => {
      const own = cells.slice(i * block, (i + 1) * block).map((cell) => cell.node);
      const name = `block ${i + 1}`;
      const attributes = { class: "attn-block", role: "group", "aria-label": name };
      return element("div", attributes, element("p", {}, name), element("div", {}, ...own));
    });
    node.replaceChildren(...groups);
  }
  function draw({ block, step }, { counts, end }) {
    if (block !== size) arrange(block);
    const largest = Math.max(1, ...counts.filter((count) => !Number.isNaN(count)));
    cells.forEach((cell, j) => cell.draw(j < end ? counts[j] : null, largest));
    Array.from(node.children).forEach((group, i) => {
      group.classList.toggle("attn-ahead", i >= step);
      group.classList.toggle("attn-now", i === step - 1);
    });
  }
  return { node, draw };
}

/** What is known after each block that was read, and below it what the plain softmax finds. */
function createRecord() {
  const columns = ["block", "max", "× before", "sum", "output"];
  const table = createTable("After each block, and the plain softmax", columns, []);
  const scroll = element("div", { class: "attn-scroll attn-record" }, table);
  const empty = ["", "", "", ""];

  function draw({ step, method, scores }, steps, plain) {
    scroll.style.setProperty("--scores", scores.length);
    const rows = steps.slice(1).map(({ largest, factor, sum, output }, i) => {
      if (i >= step) return [String(i + 1), ...empty];
      const shown = method === "no maximum" ? "\u2013" : plainNumber(largest);
      const times = method === "online" ? shortFactor(factor) : "\u2013";
      return [String(i + 1), shown, times, plainNumber(sum), vectorText(output)];
    });
    const all = [plainNumber(plain.largest), "", plainNumber(plain.sum), vectorText(plain.output)];
    const filled = createTable("", columns, [...rows, ["plain", ...all]]);
    filled.rows[step].classList.add("attn-now");
    table.tBodies[0].replaceWith(filled.tBodies[0]);
  }
  reachWhileScrolling(scroll, "What is known after each block");
  return { node: scroll, draw };
}

/** All digits of all steps, and each score's weight, in a fold. */
function createNumbers() {
  const exact = (number) =>
    Number.isFinite(number) ? withMinus(Number(number.toPrecision(8))) : plainNumber(number);
  const all = (vector) => `(${Array.from(vector, exact).join(", ")})`;
  return createFold(({ state, steps, plain }) => {
    const { step, scores, values, d } = state;
    const { counts, sum, end } = steps[step];
    const read = steps.slice(1, step + 1).map(({ blocks, largest, factor, sum, mixed, output }) => {
      return [String(blocks), ...[largest, factor, sum].map(exact), all(mixed), all(output)];
    });
    const each = Array.from(scores, (score, j) => [
      String(j + 1),
      exact(score),
      all(values.subarray(j * d, (j + 1) * d)),
      j < end ? exact(counts[j]) : "",
      j < end ? exact(sum === 0 ? 0 : counts[j] / sum) : "",
      exact(plain.weights[j]),
    ]);
    const difference = exact(differenceOf(steps[step].output, plain.output));
    const known = ["block", "maximum", "× before", "sum", "weighted sum", "output"];
    const heads = ["token", "score", "value", "counts", "weight so far", "plain weight"];
    return [
      createTable(`After each block; difference to the plain softmax: ${difference}`, known, read),
      createTable("Each token", heads, each),
    ];
  });
}

function render({ model, el }) {
  const { T, d, values, start, origin } = readState(model);
  const set = setterOf(model);
  const stepCount = () => Math.ceil(T / model.get("block"));
  function go(by) {
    set("step", Math.max(0, Math.min(readState(model).step + by, stepCount())));
  }
  function change(index, number) {
    const { scores } = readState(model);
    scores[index] = number;
    set("scores", float32Bytes(scores));
  }
  const places = Array.from({ length: T }, (_, j) => `token ${j + 1}`);
  const fields = createNumberFields(places, {
    name: "Score",
    largest: LARGEST,
    masks: true,
    change,
    settle: () => {},
  });
  const cells = fields.inputs.map((input, j) =>
    createCell(input, values.subarray(j * d, (j + 1) * d)),
  );
  const blocks = createBlocks(cells);
  const size = createSlider("Block size", {
    min: 1,
    max: T,
    choose: (block) => set("block", block),
  });
  const method = createButtonGroup("Method", METHOD_NAMES, (i) => set("method", METHODS[i]));
  const live = createLive();
  const player = createPlayer({
    pause: PAUSE,
    isLast: () => readState(model).step === stepCount(),
    start: () => set("step", 0),
    go,
    onPlayingChange: (isPlaying) => live.setAttribute("aria-live", isPlaying ? "off" : "polite"),
  });
  const [middle, second] = [Math.floor(T / 2), Math.min(1, T - 1)];
  const tries = element(
    "div",
    { class: "attn-row attn-tries", role: "group", "aria-label": "Scores to try" },
    createNote("Try:"),
    createButton(`Score ${middle + 1}: ${HUGE}`, () => change(middle, HUGE)),
    createButton(`Score ${second + 1}: \u2212∞`, () => change(second, -Infinity)),
    createQuietButton("Back to the start", () => {
      set("scores", float32Bytes(start));
      fields.draw(start, true); // also those whose text was refused
    }),
  );
  const record = createRecord();
  const table = createNumbers();
  const root = createWidget(
    "online-softmax",
    "Softmax, block by block",
    createPanes(
      [
        createNote(
          `Scores (at the start) and values: ${origin}. Bar: what a score adds to the sum, ` +
            "exp(score \u2212 max). Field: the score; type, drag it to the side, or press the arrow " +
            "keys; -inf masks it. Below: its value.",
        ),
        createControls(size.node, method.node),
        createControls(element("div", { class: "attn-row" }, ...player.nodes), tries),
      ],
      [blocks.node, fields.refusal, live, record.node],
    ),
    table.node,
  );

  function draw() {
    const state = readState(model);
    const [steps, plain] = [stepsOf(state), plainSoftmax(state)];
    size.draw(state.block, String(state.block));
    method.draw(METHODS.indexOf(state.method));
    fields.draw(state.scores);
    blocks.draw(state, steps[state.step]);
    player.draw(state.step === 0);
    record.draw(state, steps, plain);
    table.draw({ state, steps, plain }, { label: "All digits" });
    const said = [sayStep(state, steps, state.step)];
    if (state.step === steps.length - 1) said.push(sayVerdict(state, steps.at(-1), plain));
    live.replaceChildren(...said.map((sentence) => element("p", {}, sentence)));
  }

  draw();
  el.replaceChildren(root);
  const stop = redrawOn(model, ["scores", "block", "step", "method"], draw);
  return () => {
    player.end();
    stop();
  };
}

export default { render };
