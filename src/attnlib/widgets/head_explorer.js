// HeadExplorer: every head's attention weights for every number of heads that divides d.

import { attentionWeights, divisors } from "./shared/attention.js";
import { useHeadColor, weightColor } from "./shared/color.js";
import { element } from "./shared/dom.js";
import { moveByKey } from "./shared/keys.js";
import { shortNumber } from "./shared/numbers.js";
import {
  createCheckbox,
  createControls,
  createHeading,
  createLive,
  createNote,
  createPanels,
  createSlider,
  createSwatch,
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
  const read = readerOf(model);
  const dividesWidth = (count) => divisors(state.d).includes(count);
  const numHeads = read.read("num_heads", dividesWidth, `a divisor of d = ${state.d}`);
  read.index("head", numHeads);
  return state;
}

function headsOfWidth(numHeads, d) {
  return `${numHeads} ${numHeads === 1 ? "head" : "heads"} of width ${d / numHeads}`;
}

/** Slider over the head counts, and the causal checkbox. */
function createChoices(d, { chooseCount, chooseCausal }) {
  const counts = divisors(d);
  const slider = createSlider("Heads", {
    max: counts.length - 1,
    choose: (position) => chooseCount(counts[position]),
    ticks: (counts.length <= 9 ? counts : [1, d]).map(String),
  });
  const checkbox = createCheckbox("Causal: nobody looks to the right", chooseCausal);
  const node = createControls(slider.node, checkbox.node);
  function draw(numHeads, causal) {
    slider.draw(counts.indexOf(numHeads), headsOfWidth(numHeads, d));
    checkbox.draw(causal);
  }
  return { node, draw };
}

const SHADES = 1024; // of the scale; two neighbors differ by less than what a screen can show
let shades = null;

/** The pixel of each shade from weight 0 to weight 1, as four bytes in one number. */
function allShades() {
  const bytes = new Uint8ClampedArray(4 * (SHADES + 1));
  for (let i = 0; i <= SHADES; i++) bytes.set([...weightColor(i / SHADES), 255], 4 * i);
  return new Uint32Array(bytes.buffer);
}

/** Paint T x T weights, one pixel each; cells that may not be looked at stay transparent. */
function paintWeights(canvas, weights, T, causal) {
  shades ??= allShades();
  const image = new ImageData(T, T);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < T; i++) {
    const end = i * T + (causal ? i + 1 : T);
    for (let cell = i * T; cell < end; cell++) {
      pixels[cell] = shades[Math.round(SHADES * weights[cell])];
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** A small map a head; one is in the tab order, arrow keys move among them. */
function createGrid(T, { chooseHead }) {
  const node = element("div", { class: "attn-grid", role: "toolbar" });
  node.setAttribute("aria-label", "All heads; arrow keys move, Enter enlarges");
  const tiles = [];
  let count = 0;
  let columns = 1;

  function createTile(head) {
    const title = element("span", { class: "attn-tile-title" });
    const canvas = element("canvas", { width: T, height: T, "aria-hidden": "true" });
    const button = element("button", { type: "button", class: "attn-tile" }, title, canvas);
    button.setAttribute("aria-label", `head ${head + 1}`);
    useHeadColor(button, head);
    button.addEventListener("click", () => chooseHead(head));
    return { button, title, canvas };
  }

  function makeTabStop(head) {
    tiles.forEach(({ button }, i) => (button.tabIndex = i === head ? 0 : -1));
  }

  node.addEventListener("keydown", (event) => {
    const at = tiles.findIndex(({ button }) => button === event.target);
    const moved = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count - 1 };
    Object.assign(moved, { ArrowUp: at - columns, ArrowDown: at + columns });
    if (at < 0 || !(event.key in moved)) return;
    event.preventDefault();
    const next = moved[event.key];
    if (next < 0 || next >= count) return;
    makeTabStop(next);
    tiles[next].button.focus();
  });

  function draw(maps, causal) {
    count = maps.length;
    columns = Math.min(8, Math.ceil(Math.sqrt(count))); // the square is shared out among the heads
    node.style.setProperty("--columns", columns);
    while (tiles.length < count) tiles.push(createTile(tiles.length));
    maps.forEach((weights, head) => {
      paintWeights(tiles[head].canvas, weights, T, causal);
      tiles[head].title.textContent = columns > 4 ? `${head + 1}` : `head ${head + 1}`;
    });
    for (const { button } of tiles.slice(count)) button.remove();
    node.append(...tiles.slice(node.childElementCount, count).map(({ button }) => button));
  }

  function mark(chosen) {
    tiles.forEach(({ button }, i) => button.setAttribute("aria-pressed", String(i === chosen)));
    makeTabStop(chosen);
  }
  return { node, draw, mark };
}

/** One head's map with token labels, and a cursor that reads it cell by cell. */
function createMap(tokens) {
  const T = tokens.length;
  const canvas = element("canvas", { width: T, height: T });
  const plot = element("div", { class: "attn-plot", tabindex: 0, role: "application" }, canvas);
  const map = createTokenMap(tokens, plot);
  const live = createLive();
  const node = element("div", {}, element("div", { class: "attn-scroll" }, map.node), live);
  const named = tellApart(tokens);
  let weights = null;
  let causal = false;
  let cursor = null;

  function read() {
    map.pointAt(cursor);
    if (cursor === null) {
      live.textContent = "Point at a cell, or use the arrow keys, to read a weight.";
      return;
    }
    const { row, column } = cursor;
    const forbidden = causal && column > row;
    live.replaceChildren(
      element("span", { class: "attn-query" }, named(row)),
      " → ",
      element("span", { class: "attn-key" }, named(column)),
      " ",
      element("strong", {}, forbidden ? "0" : shortNumber(weights[row * T + column])),
      forbidden ? " (may not look: it comes later)" : "",
    );
  }

  function pointAt(event) {
    const { row, column } = cellAt(event, plot, T, T);
    if (row === cursor?.row && column === cursor?.column) return;
    cursor = { row, column };
    read();
  }
  plot.addEventListener("pointermove", pointAt);
  plot.addEventListener("pointerdown", pointAt);
  plot.addEventListener("focus", () => {
    cursor ??= { row: 0, column: 0 };
    read();
  });
  plot.addEventListener("keydown", (event) => {
    const next = moveByKey(event.key, cursor, T, T);
    if (next === null) return;
    event.preventDefault();
    cursor = next;
    read();
    map.showCursor();
  });

  function draw(newWeights, newCausal, head) {
    [weights, causal] = [newWeights, newCausal];
    paintWeights(canvas, weights, T, causal);
    plot.setAttribute("aria-label", `Weights of head ${head + 1}; arrow keys read them`);
    read();
  }
  return { node, draw };
}

function createKey() {
  const node = createWeightsLegend(["attn-barred", "blank: may not look"]);
  return { node, draw: (causal) => (node.lastChild.hidden = !causal) };
}

function render({ model, el }) {
  const { tokens, T, d, q, k } = readState(model);
  const set = setterOf(model);
  const controls = createChoices(d, {
    chooseCount(count) {
      model.set("head", Math.min(model.get("head"), count - 1));
      set("num_heads", count);
    },
    chooseCausal: (causal) => set("causal", causal),
  });
  const grid = createGrid(T, { chooseHead: (head) => set("head", head) });
  const [map, table, legend] = [createMap(tokens), createWeightsTable(tokens), createKey()];
  const origin = model.get("origin");
  const warning = /^random/i.test(origin) ? " No head means anything yet." : "";
  const note = createNote();
  const [heading, slice] = [createHeading(), element("code")];
  const root = createWidget(
    "head-explorer",
    "What each head looks at",
    createNote(`Weights: ${origin}.${warning}`),
    controls.node,
    createPanels(
      element("div", {}, grid.node, note),
      element("div", {}, heading, map.node, legend.node),
    ),
    table.node,
  );
  let maps = [];

  function drawHead() {
    const numHeads = maps.length;
    const head = Math.min(model.get("head"), numHeads - 1);
    const columns = `[:, ${(head * d) / numHeads}:${((head + 1) * d) / numHeads}]`;
    heading.replaceChildren(
      createSwatch(head),
      element("strong", {}, `Head ${head + 1}`),
      ` of ${numHeads} reads `,
      slice,
    );
    slice.textContent = `q${columns}, k${columns}`;
    grid.mark(head);
    map.draw(maps[head], model.get("causal"), head);
    const caption = `Weights of head ${head + 1}: rows look at columns`;
    const summary = `The numbers of head ${head + 1}`;
    table.draw({ weights: maps[head], caption }, { summary, label: caption });
  }

  function drawAll() {
    const [numHeads, causal] = [model.get("num_heads"), model.get("causal")];
    const options = { T, d, numHeads, causal };
    maps = Array.from({ length: numHeads }, (_, head) =>
      attentionWeights(q, k, { ...options, head }),
    );
    controls.draw(numHeads, causal);
    grid.draw(maps, causal);
    legend.draw(causal);
    note.textContent =
      `d = ${d} columns, d_k = ${d} / ${numHeads} = ${d / numHeads} for each head. ` +
      "Each row of each map sums to 1.";
    drawHead();
  }

  drawAll();
  el.replaceChildren(root);
  const stops = [
    redrawOn(model, ["num_heads", "causal"], drawAll),
    redrawOn(model, ["head"], drawHead),
  ];
  return () => stops.forEach((stop) => stop());
}

export default { render };
