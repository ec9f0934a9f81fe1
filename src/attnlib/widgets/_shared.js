// What the widgets share in the browser. PALETTE comes from attnlib.palette, see _base.py.

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

/** Paint T x T weights, one pixel each; cells that may not be looked at stay transparent. */
function paintWeights(canvas, weights, T, causal) {
  const image = new ImageData(T, T);
  for (let cell = 0; cell < T * T; cell++) {
    if (causal && cell % T > Math.floor(cell / T)) continue;
    image.data.set([...weightColor(weights[cell]), 255], 4 * cell);
  }
  canvas.width = canvas.height = T;
  canvas.getContext("2d").putImageData(image, 0, 0);
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
