// QueryCompass: a query among keys in one plane, its output among the values in another.

import { softmaxInPlace } from "../shared/attention.js";
import { element, svgElement } from "../shared/dom.js";
import { inWords, shortNumber, tileNumber, withMinus } from "../shared/numbers.js";
import {
  createButton,
  createControls,
  createHeading,
  createLive,
  createNote,
  createPanels,
  createSlider,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { createGoals } from "./goals.js";
import { convexHull, createDots, createPlane, HEIGHT, mix, SIZE, TOP } from "./plane.js";

const LONGEST_QUERY = 1e4; // which the buttons make
const SCALE =
  "Score: q · k / (τ √2). The temperature τ multiplies the usual √d_k, which is √2 here; " +
  "τ = 1 is the usual scale.";

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [T] = read.counts("T");
  const labels = read.texts("labels", T, { mayLack: true });
  const isPoint = (value) =>
    Array.isArray(value) && value.length === 2 && value.every(Number.isFinite);
  read.read("query", isPoint, "two numbers");
  read.read("temperature", (value) => Number.isFinite(value) && value > 0, "above 0");
  const details = read.read("details", (value) => typeof value === "boolean", "true or false");
  const points = (name) => {
    const numbers = read.numbers(name, 2 * T);
    return Array.from({ length: T }, (_, i) => [numbers[2 * i], numbers[2 * i + 1]]);
  };
  // A page that was saved before there were goals has none.
  const goals = model.get("goals") === undefined ? [] : read.indices("goals", T, "keys");
  const goalWeight = goals.length ? read.read("goal_weight", (n) => n >= 0 && n < 1, "0 to 1") : 0;
  return { T, labels, details, goals, goalWeight, keys: points("k"), values: points("v") };
}

/** Scores query . key / (temperature * sqrt(2)), their softmax, and the values mixed with it. */
export function lookUp(query, keys, values, temperature) {
  const scale = temperature * Math.sqrt(2);
  const scores = keys.map(([x, y]) => (query[0] * x + query[1] * y) / scale);
  const weights = Float64Array.from(scores);
  softmaxInPlace(weights);
  return { scores, weights, output: mix(weights, values) };
}

/** The keys with the largest score: what an endless query in this direction would look at. */
export function bestKeys(query, keys) {
  const scores = lookUp(query, keys, keys, 1).scores;
  const largest = Math.max(...scores);
  const slack = 1e-9 * Math.max(...scores.map(Math.abs));
  return scores.flatMap((score, j) => (score >= largest - slack ? [j] : []));
}

/** Where the output goes while the query grows from nothing to endless length, as points. */
export function outputPath(query, keys, values) {
  const best = bestKeys(query, keys);
  const end = mix(
    best.map(() => 1 / best.length),
    best.map((j) => values[j]),
  );
  const { scores } = lookUp(query, keys, values, 1);
  const spread = Math.max(...scores) - Math.min(...scores);
  if (best.length === keys.length || spread === 0) return [end];
  const leads = [0, ...Array.from({ length: 60 }, (_, i) => 0.1 * 1.1 ** i)]; // up to 28
  const at = (lead) => query.map((number) => (number * lead) / spread);
  return [...leads.map((lead) => lookUp(at(lead), keys, values, 1).output), end];
}

/** "(-0.8, 0.3)": a query as it was given, not rounded to two decimals. */
function pairText(query) {
  return `(${query.map((number) => withMinus(Number(number.toPrecision(4)))).join(", ")})`;
}

/** The keys' plane, in which the query is dragged by its tip or moved by arrow keys. */
function createKeyPlane(keys, names, start, { move, hold }) {
  const largest = Math.max(...keys.flat().map(Math.abs));
  // A query may be three times as long as short keys, and somewhat longer than long ones.
  const reach = Math.ceil(Math.max(1, 1.35 * largest, Math.min(3 * largest, largest + 2)));
  const plane = createPlane([0, 0], reach, "Keys and the query in the plane");
  const arrow = svgElement("line", { class: "attn-arrow" });
  plane.svg.append(arrow);
  // A query that points at a key lies outward of it, so that place comes last.
  const turns = [2, -2, 3, -3, 4, 1, -1, 0];
  const dots = createDots(keys, names, plane, { room: 4, turns, others: [start] });
  const handle = element("div", { class: "attn-handle", tabindex: 0, role: "application" });
  handle.classList.add("attn-untouched"); // it pulses until somebody takes it
  handle.addEventListener("focus", () => handle.classList.remove("attn-untouched"));
  plane.box.append(handle);
  let query = null;
  let grip = null; // from the pointer to the query's tip, while it is dragged

  const hundredth = (number) => Number(number.toFixed(2));
  const inside = (number) => Math.max(-reach, Math.min(number, reach));
  function pointOf(event) {
    const box = plane.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return plane.toPoint((x / box.width) * SIZE, TOP + (y / box.height) * HEIGHT);
  }
  const moveTo = (event, [dx, dy]) => {
    const [x, y] = pointOf(event);
    move([hundredth(inside(x + dx)), hundredth(inside(y + dy))]);
  };

  plane.box.addEventListener("pointerdown", (event) => {
    const onHandle = event.target === handle;
    // A finger beside the handle scrolls the page; if it only taps, a click follows.
    if (event.button !== 0 || (!onHandle && event.pointerType === "touch")) return;
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    hold(true);
    const [x, y] = pointOf(event);
    const isCut = query.some((number) => Math.abs(number) > reach);
    grip = onHandle && !isCut ? [query[0] - x, query[1] - y] : [0, 0];
    if (!onHandle) moveTo(event, grip);
  });
  handle.addEventListener("pointermove", (event) => grip && moveTo(event, grip));
  for (const end of ["pointerup", "pointercancel"]) {
    handle.addEventListener(end, () => {
      grip = null;
      hold(false);
    });
  }
  plane.box.addEventListener("click", (event) => {
    if (event.target !== handle) moveTo(event, [0, 0]);
  });
  handle.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const size = event.shiftKey ? 1 : 0.1;
    move(query.map((number, c) => hundredth(number + size * steps[event.key][c])));
  });

  function draw(newQuery, weights) {
    query = newQuery;
    const cut = Math.max(1, ...query.map((number) => Math.abs(number) / reach));
    const [[x1, y1], [x2, y2]] = [[0, 0], query.map((number) => number / cut)].map(plane.place);
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) arrow.setAttribute(name, value);
    plane.box.classList.toggle("attn-cut", cut > 1);
    const keys = "arrow keys move it by 0.1, with shift by 1";
    handle.setAttribute("aria-label", `Query ${pairText(query)}; ${keys}`);
    handle.style.left = `${(100 * x2) / SIZE}%`;
    handle.style.top = `${(100 * (y2 - TOP)) / HEIGHT}%`;
    dots.draw(weights, (name, weight) => `${name} ${tileNumber(weight)}`);
  }
  return { node: plane.box, draw };
}

/** The values' plane: their hull, the output, and the way that it takes. */
function createValuePlane(values, names) {
  const [low, high] = [Math.min, Math.max].map((end) =>
    [0, 1].map((c) => end(...values.map((v) => v[c]))),
  );
  const reach = 0.68 * Math.max(high[0] - low[0], high[1] - low[1]) || 1;
  const center = low.map((number, c) => (number + high[c]) / 2);
  const plane = createPlane(
    center,
    reach,
    "Values, their convex hull, and the output in the plane",
  );
  const asPoints = (points) => points.map((point) => plane.place(point).join()).join(" ");
  const hull = svgElement("polygon", { points: asPoints(convexHull(values)), class: "attn-hull" });
  const path = svgElement("polyline", { class: "attn-path" });
  const pulls = values.map(() => svgElement("line", { class: "attn-pull" }));
  const [mx, my] = plane.place(
    mix(
      values.map(() => 1 / values.length),
      values,
    ),
  );
  const cross = `M${mx - 5} ${my}H${mx + 5}M${mx} ${my - 5}V${my + 5}`;
  plane.svg.append(hull, ...pulls, path, svgElement("path", { d: cross, class: "attn-mean" }));
  const dots = createDots(values, names, plane, { room: 0, turns: [0, 1, -1, 2, -2, 3, -3, 4] });
  const diamond = svgElement("path", { d: "M0 -8L8 0L0 8L-8 0Z", class: "attn-output" });
  plane.svg.append(diamond);

  function draw(weights, output, way) {
    const [x2, y2] = plane.place(output);
    diamond.setAttribute("transform", `translate(${x2} ${y2})`);
    path.setAttribute("points", asPoints(way));
    pulls.forEach((line, j) => {
      const [x1, y1] = plane.place(values[j]);
      const attributes = { x1, y1, x2, y2, "stroke-width": 5 * weights[j] };
      for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
    });
    dots.draw(weights, (name) => name);
  }
  return { node: plane.box, draw };
}

/** The temperature, on a logarithmic slider from 0.1 to 10, and buttons for the query's length. */
function createChoices({ chooseTemperature, stretch }) {
  const slider = createSlider("Temperature τ", {
    min: -20,
    max: 20,
    choose: (position) => chooseTemperature(Number((10 ** (position / 20)).toPrecision(3))),
  });
  const button = (text, factor) => {
    const node = createButton(text, () => node.ariaDisabled === "true" || stretch(factor));
    return node;
  };
  const [longer, shorter] = [button("10 times longer", 10), button("10 times shorter", 0.1)];
  const attributes = { class: "attn-row", role: "group", "aria-label": "Length of the query" };
  const lengths = element("div", attributes, shorter, longer, button("query 0", 0));
  const node = createControls(slider.node, lengths);
  function draw(temperature, query) {
    const position = Math.round(20 * Math.log10(temperature));
    slider.draw(position, String(Number(temperature.toPrecision(3))));
    const length = Math.hypot(...query);
    // Not `disabled`, which would take the focus away from somebody who presses it again.
    longer.ariaDisabled = String(length === 0 || 10 * length > LONGEST_QUERY);
    shorter.ariaDisabled = String(10 * length < 1 / LONGEST_QUERY);
  }
  return { node, draw };
}

/** Keys, values, scores and weights as a table, in a fold. */
function createNumbers(keys, values, labels) {
  const short = (point) =>
    `(${point.map((number) => withMinus(Number(number.toPrecision(4)))).join(", ")})`;
  return createFold(({ scores, weights }) => {
    const rows = keys.map((key, j) => [
      labels[j] ?? String(j),
      short(key),
      short(values[j]),
      withMinus(scores[j].toFixed(3)),
      shortNumber(weights[j], 3),
    ]);
    const columns = [labels.length ? "label" : "index", "key", "value", "score", "weight"];
    return [createTable("Score: q · k / (τ √2). Weight: softmax of the scores.", columns, rows)];
  });
}

/** "(1.90, 0.92)", never with a negative zero. */
function pointText(point) {
  const text = (number) => (Math.abs(number) < 0.005 ? 0 : number).toFixed(2);
  return `(${point.map((number) => withMinus(text(number))).join(", ")})`;
}

function render({ model, el }) {
  const { T, labels, details, goals, goalWeight, keys, values } = readState(model);
  const inDetail = (...nodes) => (details ? nodes : []);
  const set = setterOf(model);
  const names = (letter) => keys.map((_, j) => labels[j] ?? `${letter}${j}`);
  const live = createLive();
  const news = []; // goals that were reached and aren't spoken yet
  const goalChips = createGoals(goals, names("k"), goalWeight);
  const controls = createChoices({
    chooseTemperature: (temperature) => set("temperature", temperature),
    stretch: (factor) =>
      set(
        "query",
        model.get("query").map((n) => Number((n * factor).toPrecision(12))),
      ),
  });
  const keyPlane = createKeyPlane(keys, names("k"), model.get("query"), {
    move: (query) => set("query", query),
    hold(held) {
      live.setAttribute("aria-live", held ? "off" : "polite"); // spoken once, when it is let go
      if (!held) draw();
    },
  });
  const [valuePlane, table] = [
    createValuePlane(values, names("v")),
    createNumbers(keys, values, labels),
  ];
  const [queryText, limits] = [element("span"), createNote()];
  const panel = (plane, ...title) => element("div", {}, createHeading(...title), plane.node);
  const root = createWidget(
    "query-compass",
    "A query among keys, and what it gets",
    createNote(
      `Keys and values: ${model.get("origin")}. Drag the query, or press the arrow keys on it. `,
      ...inDetail(SCALE),
    ),
    ...inDetail(controls.node),
    createPanels(
      panel(
        keyPlane,
        element("span", { class: "attn-query" }, "Query "),
        queryText,
        " among the ",
        element("span", { class: "attn-key" }, "keys"),
      ),
      panel(
        valuePlane,
        element("span", { class: "attn-query" }, "Output"),
        " among the ",
        element("span", { class: "attn-key" }, "values"),
      ),
    ),
    goalChips.node,
    createNote("Area of a dot: its weight. Diamond: the output."),
    live,
    ...inDetail(limits, table.node),
  );

  function draw() {
    const [query, temperature] = [model.get("query"), model.get("temperature")];
    const found = lookUp(query, keys, values, temperature);
    controls.draw(temperature, query);
    keyPlane.draw(query, found.weights);
    const way = details ? outputPath(query, keys, values) : [];
    valuePlane.draw(found.weights, found.output, way);
    table.draw(found, { label: "Scores and weights" });
    queryText.textContent = pairText(query);
    const weights = Array.from(found.weights, (weight) => tileNumber(weight)).join(" ");
    news.push(...goalChips.draw(Array.from(found.weights)));
    live.textContent = [
      ...news.map((name) => `${name} is reached`),
      `weights ${weights}`,
      `output ${pointText(found.output)}`,
    ].join("; ");
    if (live.getAttribute("aria-live") !== "off") news.length = 0;
    const best = bestKeys(query, keys).map((j) => names("v")[j]);
    limits.textContent =
      best.length === T
        ? "All scores are equal, so the output is the mean of the values (+)."
        : "Dashed: a longer query, or a lower temperature, takes the output to " +
          `${best.length > 1 ? "the mean of " : ""}${inWords(best)}; ` +
          "a shorter query, or a higher temperature, to the mean of all values (+).";
  }

  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["query", "temperature"], draw);
}

export default { render };
