// Weights as pictures: one pixel a weight, and a dot at each row's favorite.

import { largestOf } from "./attention.js";
import { weightColor } from "./color.js";
import { element, svgElement, writeAttribute } from "./dom.js";

const SHADES = 1024; // of the scale; two neighbors differ by less than what a screen can show
let shades = null;

/** The pixel of each shade from weight 0 to weight 1, as four bytes in one number. */
function allShades() {
  const bytes = new Uint8ClampedArray(4 * (SHADES + 1));
  for (let i = 0; i <= SHADES; i++) bytes.set([...weightColor(i / SHADES), 255], 4 * i);
  return new Uint32Array(bytes.buffer);
}

/**
 * Each row's largest weight: {row, column, weight}, one for each column that shares it; none of rows
 * that look at all alike.
 */
export function favorites(weights, columns, { rows, mayLook }) {
  const found = [];
  for (let row = 0; row < rows; row++) {
    const own = weights.subarray(row * columns, row * columns + mayLook(row));
    const weight = largestOf(own);
    const best = [];
    for (let column = 0; column < own.length; column++) {
      if (own[column] >= weight - 1e-9) best.push({ row, column, weight });
    }
    if (own.length === 1 || best.length < own.length) found.push(...best);
  }
  return found;
}

/**
 * The sharpest weight of a head, T x T: {row, column, weight}. A token that may look at one alone has
 * no choice, and counts only where nobody has one; where all look at all alike, the first counts.
 */
export function sharpest(weights, T, causal) {
  const rows = { rows: T, mayLook: (row) => (causal ? row + 1 : T) };
  const all = favorites(weights, T, rows);
  const chosen = all.filter(({ row }) => rows.mayLook(row) > 1);
  const [first, ...others] = chosen.length > 0 ? chosen : all;
  const alike = { row: T - 1, column: 0, weight: weights.at(-1) };
  return others.reduce((a, b) => (b.weight > a.weight + 1e-9 ? b : a), first ?? alike);
}

/** The largest weight of a row, averaged over a head's rows, T x T, that look at more than one. */
export function meanLargest(weights, T, causal) {
  const first = causal && T > 1 ? 1 : 0;
  let sum = 0;
  for (let row = first; row < T; row++) {
    sum += largestOf(weights.subarray(row * T, (row + 1) * T));
  }
  return sum / (T - first);
}

/** Rows of weights as colors from 0 to `top`; what a row may not look at stays transparent. */
export function paintWeights(canvas, weights, columns, { rows, mayLook, top }) {
  shades ??= allShades();
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let row = 0; row < rows; row++) {
    const end = row * columns + mayLook(row);
    for (let cell = row * columns; cell < end; cell++) {
      pixels[cell] = shades[Math.round(SHADES * Math.min(1, weights[cell] / top))];
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** A picture of rows of weights, with dots where `isMarked`. */
export function createWeightsPicture() {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const dots = ["attn-halo", "attn-dot"].map((name) => svgElement("path", { class: name }));
  const attributes = { class: "attn-dots", preserveAspectRatio: "none", "aria-hidden": "true" };
  const svg = svgElement("svg", attributes, ...dots);
  const node = element("span", { class: "attn-picture" }, canvas, svg);

  function draw(weights, columns, { isMarked, ...options }) {
    paintWeights(canvas, weights, columns, options);
    writeAttribute(svg, "viewBox", `0 0 ${columns} ${options.rows}`);
    const marked = isMarked ? favorites(weights, columns, options) : [];
    const path = marked.map(({ row, column }) => `M${column + 0.5} ${row + 0.5}h0`).join("");
    for (const dot of dots) writeAttribute(dot, "d", path);
  }
  return { node, draw };
}
