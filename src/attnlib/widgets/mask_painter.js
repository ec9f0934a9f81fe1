// MaskPainter: a mask painted cell by cell, the weights under it, and who sees the future.

import { attentionWeights } from "./shared/attention.js";
import { textColorOn, weightColor } from "./shared/color.js";
import { element, svgElement } from "./shared/dom.js";
import { moveByKey } from "./shared/keys.js";
import { inWords, shortNumber } from "./shared/numbers.js";
import {
  createButton,
  createLive,
  createNote,
  createPanels,
  createWeightsLegend,
  createWidget,
} from "./shared/parts.js";
import { readerOf, redrawOn, setterOf } from "./shared/state.js";
import {
  cellAt,
  createTokenMap,
  createWeightsTable,
  readTokens,
  tellApart,
} from "./shared/token_map.js";

/** The widget's state, checked. */
export function readState(model) {
  const state = readTokens(model);
  const cells = state.T ** 2;
  const isMask = (mask) =>
    Array.isArray(mask) && mask.length === cells && mask.every((cell) => cell === !!cell);
  readerOf(model).read("mask", isMask, `${cells} booleans`);
  return state;
}

/** For each row that may look to its right: {row, columns}, the later tokens that it sees. */
export function leaks(mask, T) {
  const indices = Array.from({ length: T }, (_, i) => i);
  return indices
    .map((row) => ({ row, columns: indices.filter((j) => j > row && mask[row * T + j]) }))
    .filter(({ columns }) => columns.length > 0);
}

/** The rows that may look nowhere. */
export function blindRows(mask, T) {
  const rows = Array.from({ length: T }, (_, i) => i);
  return rows.filter((i) => !mask.slice(i * T, (i + 1) * T).includes(true));
}

/** Masks to start from: whether row i may look at column j. */
const PRESETS = {
  everything: () => true,
  causal: (i, j) => j <= i,
  "causal, window of 3": (i, j) => j <= i && j > i - 3,
  "no self": (i, j) => i !== j,
  "last two are padding": (_i, j, T) => j < T - 2,
  nothing: () => false,
};

function presetMask(name, T) {
  return Array.from({ length: T * T }, (_, cell) =>
    PRESETS[name](Math.floor(cell / T), cell % T, T),
  );
}

function createPresets(T, { choose }) {
  const buttons = Object.keys(PRESETS).map((name) => {
    const button = createButton(name, () => choose(presetMask(name, T)));
    return { button, mask: presetMask(name, T).join() };
  });
  const attributes = { class: "attn-controls attn-row", role: "group", "aria-label": "Masks" };
  const node = element("div", attributes);
  node.append(...buttons.map(({ button }) => button));
  function draw(mask) {
    const painted = mask.join();
    for (const preset of buttons) {
      preset.button.setAttribute("aria-pressed", String(preset.mask === painted));
    }
  }
  return { node, draw };
}

/** The cells between two cells, the last one included: a fast pointer skips some. */
function cellsOnTheWay(from, to) {
  const [down, right] = [to.row - from.row, to.column - from.column];
  const steps = Math.max(Math.abs(down), Math.abs(right), 1);
  return Array.from({ length: steps }, (_, i) => ({
    row: from.row + Math.round((down * (i + 1)) / steps),
    column: from.column + Math.round((right * (i + 1)) / steps),
  }));
}

/** Right of this line lies the future. */
function createStairs(T) {
  const steps = Array.from({ length: T - 1 }, (_, i) => `V${i + 1}H${i + 2}`).join("");
  const line = (name) => svgElement("path", { d: `M1 0${steps}V${T}`, class: name });
  return svgElement("svg", { viewBox: `0 0 ${T} ${T}` }, line("attn-halo"), line("attn-stairs"));
}

/** The mask as a square of cells, painted by pointer or keys; each cell shows its weight. */
function createPainting(tokens, { paint }) {
  const T = tokens.length;
  const cells = Array.from({ length: T * T }, () => element("span"));
  const square = element("div", { class: "attn-cells", "aria-hidden": "true" }, ...cells);
  const plot = element("div", { class: "attn-plot", tabindex: 0, role: "application" }, square);
  plot.setAttribute("aria-label", "Mask; arrow keys move, space allows or forbids the look");
  square.append(createStairs(T));
  plot.classList.toggle("attn-few", T <= 8);
  const map = createTokenMap(tokens, plot);
  const live = createLive();
  const node = element("div", {}, element("div", { class: "attn-scroll" }, map.node), live);
  const named = tellApart(tokens);
  let [mask, weights, cursor] = [null, null, null];
  let brush = null; // true while a drag allows looks, false while it forbids them

  function read() {
    map.pointAt(cursor);
    if (cursor === null) {
      live.textContent = "Click or drag over cells; or use the arrow keys and space.";
      return;
    }
    const cell = cursor.row * T + cursor.column;
    const weight = element("strong", {}, mask[cell] ? shortNumber(weights[cell]) : "");
    live.replaceChildren(
      element("span", { class: "attn-query" }, named(cursor.row)),
      " → ",
      element("span", { class: "attn-key" }, named(cursor.column)),
      mask[cell] ? ": may look, weight " : ": may not look",
      weight,
    );
  }

  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    plot.setPointerCapture(event.pointerId);
    cursor = cellAt(event, plot, T, T);
    brush = !mask[cursor.row * T + cursor.column];
    paint([cursor], brush);
  });
  plot.addEventListener("pointermove", (event) => {
    const next = cellAt(event, plot, T, T);
    if (next.row === cursor?.row && next.column === cursor?.column) return;
    const way = cellsOnTheWay(cursor ?? next, next);
    cursor = next;
    if (brush === null) read();
    else paint(way, brush);
  });
  for (const end of ["pointerup", "pointercancel"])
    plot.addEventListener(end, () => (brush = null));
  plot.addEventListener("focus", () => {
    cursor ??= { row: 0, column: 0 };
    read();
  });
  plot.addEventListener("keydown", (event) => {
    const next = moveByKey(event.key, cursor, T, T);
    if (next === null && event.key !== " ") return;
    event.preventDefault();
    if (next === null) return paint([cursor], !mask[cursor.row * T + cursor.column]);
    cursor = next;
    read();
    map.showCursor();
  });

  function draw(newMask, newWeights, blind) {
    [mask, weights] = [newMask, newWeights];
    cells.forEach((span, cell) => {
      const [row, column] = [Math.floor(cell / T), cell % T];
      const color = mask[cell] ? weightColor(weights[cell]) : null;
      span.style.background = color ? `rgb(${color})` : "";
      span.style.color = color ? textColorOn(color) : "";
      span.textContent = color ? shortNumber(weights[cell]) : "";
      span.classList.toggle("attn-leak", mask[cell] && column > row);
      span.classList.toggle("attn-blind", blind.includes(row));
    });
    read();
  }
  return { node, draw };
}

/** Says which tokens see a later one, and which see nothing. */
function createAlarm(tokens) {
  const summary = element("p", { class: "attn-summary", role: "status" });
  const list = element("ul");
  const counted = createNote("Tokens are counted from 0.");
  const node = element("div", { class: "attn-alarm" }, summary, list, counted);
  const called = (i) => `token ${i} "${tokens[i]}"`;

  function sees({ row, columns }) {
    const seen = columns.length === 1 ? called(columns[0]) : `tokens ${inWords(columns)}`;
    return `${called(row)} can see ${seen}`;
  }

  function draw(found, blind) {
    const count = found.reduce((sum, { columns }) => sum + columns.length, 0);
    summary.textContent =
      count === 0
        ? "No leak: every token sees only itself and the past"
        : `Leak: ${count} ${count === 1 ? "look" : "looks"} into the future`;
    node.classList.toggle("attn-leaking", count > 0);
    const lines = [...found.map(sees), ...blind.map((i) => `${called(i)} looks nowhere: output 0`)];
    list.replaceChildren(...lines.map((line) => element("li", {}, line)));
    counted.hidden = lines.length === 0;
  }
  return { node, draw };
}

function render({ model, el }) {
  const { tokens, T, d, q, k } = readState(model);
  const set = setterOf(model);
  const presets = createPresets(T, { choose: (mask) => set("mask", mask) });
  const painting = createPainting(tokens, {
    paint(cells, mayLook) {
      const mask = [...model.get("mask")];
      for (const { row, column } of cells) mask[row * T + column] = mayLook;
      set("mask", mask);
    },
  });
  const [alarm, table] = [createAlarm(tokens), createWeightsTable(tokens)];
  const legend = createWeightsLegend(
    ["attn-barred", "blank: may not look"],
    ["attn-barred attn-nowhere", "looks nowhere"],
    ["attn-future", "looks into the future, right of the line"],
  );
  const root = createWidget(
    "mask-painter",
    "Who may look at whom",
    createNote(`Queries and keys: ${model.get("origin")}.`),
    presets.node,
    createPanels(element("div", {}, painting.node, legend), alarm.node),
    table.node,
  );

  function draw() {
    const mask = model.get("mask");
    const weights = attentionWeights(q, k, { T, d, numHeads: 1, head: 0, causal: false, mask });
    const blind = blindRows(mask, T);
    presets.draw(mask);
    painting.draw(mask, weights, blind);
    alarm.draw(leaks(mask, T), blind);
    const caption = "Weights under this mask: rows look at columns";
    table.draw({ weights, caption }, { label: caption });
  }

  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["mask"], draw);
}

export default { render };
