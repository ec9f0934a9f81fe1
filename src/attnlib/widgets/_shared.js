// What the widgets share in the browser. PALETTE comes from attnlib.palette, see _base.py.

/** Read `count` little-endian float32 (or float64) numbers; throws when they aren't there. */
export function readNumbers(name, bytes, count, { size = 4 } = {}) {
  const view = ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes instanceof ArrayBuffer ? bytes : new ArrayBuffer(0));
  if (view.byteLength !== size * count) {
    const wanted = `${count} numbers in ${size * count} bytes`;
    throw new Error(`${name} should be ${wanted}, but is ${view.byteLength}`);
  }
  const read = size === 8 ? view.getFloat64 : view.getFloat32;
  const numbers = Float64Array.from({ length: count }, (_, i) => read.call(view, size * i, true));
  if (!numbers.every(Number.isFinite)) throw new Error(`${name} holds a number that isn't finite`);
  return numbers;
}

/** A function that sets a trait of the model, as a reader does. */
function setterOf(model) {
  return (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
}

/** Call `draw` whenever one of these traits changes; returns how to stop. */
function redrawOn(model, traits, draw) {
  const events = traits.map((trait) => `change:${trait}`);
  for (const event of events) model.on(event, draw);
  return () => {
    for (const event of events) model.off(event, draw);
  };
}

/** An element with attributes and children. Text is only ever text, never parsed as HTML. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Give a node the color of head number `head`, as --attn-head, in both themes. */
function useHeadColor(node, head) {
  node.style.setProperty("--attn-head", `var(--attn-head-${head % PALETTE.headColors})`);
}

/** ".31" without the leading zero; "1.00" when it rounds to 1. */
function shortNumber(weight, digits = 2) {
  return weight.toFixed(digits).replace(/^0/, "");
}

const WEIGHT_STOPS = PALETTE.weightScale.map((hex) =>
  [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)),
);

/** The color of a weight from 0 to 1, as [red, green, blue] from 0 to 255. */
function weightColor(weight) {
  const position = weight * (WEIGHT_STOPS.length - 1);
  const below = Math.min(Math.floor(position), WEIGHT_STOPS.length - 2);
  const [low, high] = [WEIGHT_STOPS[below], WEIGHT_STOPS[below + 1]];
  return low.map((from, c) => from + (position - below) * (high[c] - from));
}

/**
 * Keep JupyterLab from taking arrow keys and Enter for its shortcuts while a control has the focus.
 * It looks for the mark on the focused element itself.
 */
function keepKeys(root) {
  root.addEventListener("focusin", ({ target }) => {
    target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
}

/** Move a position in a grid by an arrow, Home or End key; null for any other key. */
function moveByKey(key, { row, column }, rows, columns) {
  const moves = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, columns - 1],
  };
  if (!(key in moves)) return null;
  const clamp = (value, size) => Math.max(0, Math.min(value, size - 1));
  return { row: clamp(moves[key][0], rows), column: clamp(moves[key][1], columns) };
}

/** Black or white, whichever reads better on a color that is the same in both themes: 4.5 to 1. */
function textColorOn(color) {
  const [red, green, blue] = color.map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/** An SVG element with attributes and children. Text is only ever text. */
function svgElement(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Items as a list in words: "3, 4 and 5". */
function inWords(items) {
  return [items.slice(0, -1).join(", "), items.at(-1)].filter((part) => part !== "").join(" and ");
}

/** Make a box that scrolls a stop of the Tab key, so that keys can scroll it, while it is too small. */
function reachWhileScrolling(box, name) {
  const update = () => {
    const scrolls = box.scrollWidth > box.clientWidth;
    const attributes = { tabindex: 0, role: "group", "aria-label": name };
    for (const [attribute, value] of Object.entries(attributes)) {
      if (scrolls) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
    }
  };
  const observer = new ResizeObserver(update);
  for (const node of [box, ...box.children]) observer.observe(node);
}

/** The frame of a widget: its title, what it shows, and keys that JupyterLab leaves to it. */
function createWidget(name, title, ...children) {
  const attributes = { class: `attn-widget attn-${name}`, role: "group", "aria-label": title };
  const root = element("div", attributes, element("p", { class: "attn-title" }, title), ...children);
  keepKeys(root);
  return root;
}

/**
 * A fold with tables that are made only while it is open: `makeTables(shown)` of what was last
 * given to `draw(shown, {summary, label})`.
 */
function createFold(makeTables) {
  const summary = element("summary");
  const scroll = element("div", { class: "attn-scroll attn-table", tabindex: 0, role: "group" });
  const node = element("details", {}, summary, scroll);
  let current = null;
  const fill = () => node.open && scroll.replaceChildren(...makeTables(current));
  node.addEventListener("toggle", fill);

  function draw(shown, { summary: text = "The numbers", label }) {
    current = shown;
    summary.textContent = text;
    scroll.setAttribute("aria-label", label);
    fill();
  }
  return { node, draw };
}

/** A table; `columns` and each row [name, ...cells] are texts. */
function createTable(caption, columns, rows) {
  const header = (scope, text) => element("th", { scope }, text);
  const head = element("tr", {}, ...columns.map((text) => header("col", text)));
  const body = rows.map(([name, ...cells]) =>
    element("tr", {}, header("row", name), ...cells.map((text) => element("td", {}, text))));
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, head),
    element("tbody", {}, ...body),
  );
}

/** The scale of weights, and `signs`: what else is to be seen, as [class, words]. */
function createWeightsLegend(...signs) {
  const scale = element("span", { class: "attn-scale", "aria-hidden": "true" });
  const entries = signs.map(([name, words]) => element("span", { class: name }, words));
  return element("div", { class: "attn-legend" }, "weight 0", scale, "1", ...entries);
}

/** Round numbers from low to high: multiples of 1, 2 or 5 times a power of ten, `most` steps or fewer. */
function roundTicks(low, high, most) {
  const smallest = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(smallest));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= smallest);
  const first = Math.ceil(low / step);
  const count = Math.floor(high / step) - first + 1;
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}
