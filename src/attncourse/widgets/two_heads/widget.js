// TwoHeads: two small heads and the one big head of the same numbers, computed as a reader edits.

import { attentionWeights } from "../shared/attention.js";
import { textColorOn, weightColor } from "../shared/color.js";
import { element, reachWhileScrolling } from "../shared/dom.js";
import { writeWithFlash } from "../shared/flash.js";
import { float32Bytes } from "../shared/number_field.js";
import { plainNumber, shortNumber } from "../shared/numbers.js";
import {
  createHeading,
  createLive,
  createNote,
  createPanes,
  createQuietButton,
  createSwatch,
  createWeightsLegend,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createUndo } from "../shared/undo.js";
import { createNumberMatrix } from "./fields.js";
import { createGlance, createTries, isTry, rowOf } from "./tries.js";

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [T, d, width] = ["T", "d", "d_k"].map((name) => read.whole(name, 6));
  const largest = read.read("largest", (value) => Number.isFinite(value) && value > 0, "above 0");
  const tokens = (name) => read.numbers(name, T * d);
  const matrices = (name) => read.numbers(name, 6 * d * width);
  const start = { x: tokens("start_x"), heads: matrices("start_heads") };
  const fits = (value) => isTry(value, d, width, largest);
  const tries = read.list("tries", fits, "rows [head, matrix, row, numbers]", 0);
  return { T, d, width, largest, x: tokens("x"), heads: matrices("heads"), start, tries };
}

/** a [n, m] times b [m, p], all row by row. */
function multiply(a, b, n, m, p) {
  const product = new Float64Array(n * p);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < p; j++) {
      for (let c = 0; c < m; c++) product[i * p + j] += a[i * m + c] * b[c * p + j];
    }
  }
  return product;
}

/** Everything that one head makes of its queries, keys and values, each [T, width]. */
function attend([q, k, v], T, width) {
  const transposed = Float64Array.from(k, (_, i) => k[(i % T) * width + Math.floor(i / T)]);
  const scores = multiply(q, transposed, T, width, T);
  const scaled = scores.map((score) => score / Math.sqrt(width));
  const weights = attentionWeights(q, k, { T, d: width, numHeads: 1, head: 0, causal: false });
  return { q, k, v, scores, scaled, weights, output: multiply(weights, v, T, T, width) };
}

/** Head 1, head 2, and the one head whose matrices are theirs side by side. */
export function computeAll({ T, d, width, x, heads }) {
  const size = d * width;
  const project = (i) => multiply(x, heads.subarray(i * size, (i + 1) * size), T, d, width);
  const [first, second] = [[0, 1, 2].map(project), [3, 4, 5].map(project)];
  const sideBySide = (left, right) =>
    Float64Array.from({ length: 2 * T * width }, (_, i) => {
      const half = Math.floor(i / width); // of row half / 2
      return (half % 2 ? right : left)[Math.floor(half / 2) * width + (i % width)];
    });
  const both = first.map((projected, i) => sideBySide(projected, second[i]));
  return [attend(first, T, width), attend(second, T, width), attend(both, T, 2 * width)];
}

/** "W_q" as in formulas, with its index lowered. */
function symbol(name) {
  const [letter, index] = name.split("_");
  return element("span", {}, element("i", {}, letter), index ? element("sub", {}, index) : "");
}

/** A matrix of results with a row a token; `draw(write)` fills each cell by write(cell, index). */
function createResult(caption, T, columns, { toTokens = false } = {}) {
  const header = (scope, i, role) => element("th", { scope, class: role }, `token ${i}`);
  const cells = Array.from({ length: T * columns }, () => element("td"));
  const title = element("caption", {}, ...caption);
  const table = element("table", {}, title);
  if (toTokens) {
    const names = Array.from({ length: T }, (_, j) => header("col", j, "attn-key"));
    table.append(element("thead", {}, element("tr", {}, element("td"), ...names)));
  }
  const body = Array.from({ length: T }, (_, i) => {
    const row = cells.slice(i * columns, (i + 1) * columns);
    return element("tr", {}, header("row", i, "attn-query"), ...row);
  });
  table.append(element("tbody", {}, ...body));
  const node = element("div", { class: "attn-scroll" }, table);
  reachWhileScrolling(node, title.textContent);
  return { node, draw: (write) => cells.forEach(write) };
}

const writeNumbers = (numbers) => (cell, i) => writeWithFlash(cell, plainNumber(numbers[i]));

/** A weight in the color of its size. */
function writeWeight(cell, weight) {
  const background = weightColor(weight);
  writeWithFlash(cell, shortNumber(weight));
  cell.style.background = `rgb(${background.map(Math.round)})`;
  cell.style.color = textColorOn(background);
}

/** One head from its scores to its output. The big head's scores are shown as a sum. */
function createHead(name, T, width, color) {
  const toTokens = { toTokens: true };
  const transposedKeys = [symbol("K"), element("sup", {}, "T")];
  const results = {
    scores: createResult(["scores ", symbol("Q"), " ", ...transposedKeys], T, T, toTokens),
    scaled: createResult([`scaled: \u00f7 \u221a${width}`], T, T, toTokens),
    weights: createResult(["weights: softmax"], T, T, toTokens),
    output: createResult(["output: weights \u00d7 ", symbol("V")], T, width),
  };
  const node = element("div", { class: "attn-column", role: "group", "aria-label": name });
  node.append(headingOf(name, color));
  for (const [step, result] of Object.entries(results)) {
    result.node.classList.add(`attn-${step}`);
    node.append(result.node);
  }

  function draw(head, summands) {
    results.scaled.draw(writeNumbers(head.scaled));
    results.output.draw(writeNumbers(head.output));
    results.scores.draw((cell, i) => {
      const score = plainNumber(head.scores[i]);
      const sum = summands.map(({ scores }) => plainNumber(scores[i])).join(" + ");
      writeWithFlash(cell, sum ? `${score} = ${sum}` : score);
      if (sum)
        cell.replaceChildren(`${score} `, element("span", { class: "attn-sum" }, `= ${sum}`));
    });
    results.weights.draw((cell, i) => writeWeight(cell, head.weights[i]));
  }
  return { node, draw };
}

function headingOf(name, color) {
  return createHeading(createSwatch(color), element("strong", {}, name));
}

/** The matrices of one head to edit, each above what it makes of the tokens. */
function createProjections(name, { T, d, width, largest }, color, { change, settle }) {
  const rows = Array.from({ length: d }, (_, i) => `row ${i + 1}`);
  const made = ["Q", "K", "V"].map((letter) => createResult([symbol(letter)], T, width));
  const editors = ["W_q", "W_k", "W_v"].map((matrix, m) => {
    const caption = element("span", {}, symbol(matrix));
    caption.append(element("span", { class: "attn-unseen" }, ` of ${name}`));
    return createNumberMatrix(caption, rows, width, {
      largest,
      settle,
      change: (i, number) => change(m * d * width + i, number),
    });
  });
  const pairs = editors.map(({ node }, m) => element("div", {}, node, made[m].node));
  const node = element("div", { class: "attn-projections" }, headingOf(name, color), ...pairs);

  function draw(matrices, head, always) {
    const size = d * width;
    editors.forEach((editor, m) =>
      editor.draw(matrices.subarray(m * size, (m + 1) * size), always),
    );
    [head.q, head.k, head.v].forEach((numbers, m) => made[m].draw(writeNumbers(numbers)));
  }
  return { node, draw };
}

/** Queries, keys and values of the big head, which has no matrices of its own. */
function createStacked(name, T, width) {
  const made = ["Q", "K", "V"].map((letter) => createResult([symbol(letter)], T, width));
  const note = createNote("The same columns, side by side:");
  const node = element("div", { class: "attn-projections" }, headingOf(name, null), note);
  node.append(...made.map((result) => result.node));
  const draw = (head) =>
    [head.q, head.k, head.v].forEach((numbers, m) => made[m].draw(writeNumbers(numbers)));
  return { node, draw };
}

/** The token that a row of weights looks at most: "token 1 (0.80)", or "both alike (0.50)". */
function preference(row) {
  const [most, next] = Array.from(row).sort((a, b) => b - a);
  const tie = most - next < 0.005;
  const place = tie
    ? row.length === 2
      ? "both alike"
      : "several alike"
    : `token ${row.indexOf(most)}`;
  return `${place} (${shortNumber(most)})`;
}

/** One sentence a token: where the heads look, and where the big one does. */
function sayPreferences(results, T, bigName) {
  if (T === 1) return ["With one token there is nothing to choose: every weight is 1."];
  return Array.from({ length: T }, (_, i) => {
    const [one, two, big] = results.map(({ weights }) =>
      preference(weights.subarray(i * T, (i + 1) * T)),
    );
    return `Token ${i} looks at ${one} in head 1, ${two} in head 2, ${big} in ${bigName}.`;
  });
}

function render({ model, el }) {
  const sizes = readState(model);
  const { T, d, width, largest, start } = sizes;
  const names = ["Head 1", "Head 2", `One head of width ${2 * width}`];
  const colors = [0, 1, null];
  const set = setterOf(model);
  const undo = createUndo({
    read: () => ["x", "heads"].map((name) => [name, model.get(name)]),
    restore(kept) {
      for (const [name, bytes] of kept) set(name, bytes);
      settle();
      draw(true); // also the fields whose text was refused
    },
  });
  let changing = null; // the number that is being typed or moved: all of it is one change
  const settle = () => (changing = null);
  function change(name, index, number) {
    if (changing !== `${name} ${index}`) undo.remember();
    changing = `${name} ${index}`;
    const numbers = readState(model)[name];
    numbers[index] = number;
    set(name, float32Bytes(numbers));
  }
  const tokens = Array.from({ length: T }, (_, i) => `token ${i}`);
  const caption = element("span", {}, symbol("X"), ", the tokens");
  const x = createNumberMatrix(caption, tokens, d, {
    largest,
    settle,
    change: (i, number) => change("x", i, number),
  });
  const projections = [0, 1].map((i) =>
    createProjections(names[i], sizes, colors[i], {
      settle,
      change: (at, number) => change("heads", 3 * i * d * width + at, number),
    }),
  );
  const stacked = createStacked(names[2], T, 2 * width);
  const heads = names.map((name, i) => createHead(name, T, i < 2 ? width : 2 * width, colors[i]));
  const tries = createTries(sizes, symbol, (value) => {
    undo.remember();
    settle();
    const { heads: numbers } = readState(model);
    numbers.set(value[3], rowOf(value, d, width));
    set("heads", float32Bytes(numbers));
  });
  const glance = createGlance(names, colors, T, writeWeight);
  const reset = createQuietButton("Back to the start", () => {
    undo.remember();
    settle();
    for (const name of ["x", "heads"]) set(name, float32Bytes(start[name]));
    draw(true); // also the fields whose text was refused
  });
  const live = createLive();
  const root = createWidget(
    "two-heads",
    "Two heads, and the same numbers as one",
    createPanes(
      [
        glance.node,
        createNote(
          "Change any number: drag it sideways, type, or press the arrow keys up and down in its ",
          "field. Rows look, columns are looked at.",
        ),
        element("div", { class: "attn-tokens" }, x.node, reset, undo.node),
        tries.node,
        live,
      ],
      [
        element("div", { class: "attn-heads" }, ...heads.map(({ node }) => node)),
        createWeightsLegend(),
        element(
          "details",
          {},
          element("summary", {}, "The six matrices, with queries, keys and values"),
          ...projections.map(({ node }) => node),
          stacked.node,
        ),
      ],
    ),
  );

  function draw(always = false) {
    const state = readState(model);
    const results = computeAll(state);
    x.draw(state.x, always);
    projections.forEach((projection, i) => {
      const matrices = state.heads.subarray(3 * i * d * width, 3 * (i + 1) * d * width);
      projection.draw(matrices, results[i], always);
    });
    stacked.draw(results[2]);
    tries.draw(state.heads);
    glance.draw(results);
    heads.forEach((head, i) => head.draw(results[i], i === 2 ? results.slice(0, 2) : []));
    const sentences = sayPreferences(results, T, names[2].toLowerCase());
    live.replaceChildren(...sentences.map((sentence) => element("p", {}, sentence)));
  }
  undo.listenTo(root);
  draw(true);
  el.replaceChildren(root);
  return redrawOn(model, ["x", "heads"], () => draw());
}

export default { render };
