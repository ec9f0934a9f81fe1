// Colors of heads and weights. The palette is attnlib's; _browser_code.py writes its module.

import { PALETTE } from "./palette.js";

/** Give a node the color of head number `head`, as --attn-head, in both themes. */
export function useHeadColor(node, head) {
  node.style.setProperty("--attn-head", `var(--attn-head-${head % PALETTE.headColors})`);
}

const stopsOf = (scale) =>
  scale.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const WEIGHT_STOPS = stopsOf(PALETTE.weightScale);
const SIGNED_STOPS = stopsOf(PALETTE.signedScale);

/** The color at a share of a scale, from 0 to 1, as [red, green, blue] from 0 to 255. */
function colorAt(stops, share) {
  const position = share * (stops.length - 1);
  const below = Math.min(Math.floor(position), stops.length - 2);
  const [low, high] = [stops[below], stops[below + 1]];
  return low.map((from, c) => from + (position - below) * (high[c] - from));
}

/** The color of a weight from 0 to 1, as [red, green, blue] from 0 to 255. */
export function weightColor(weight) {
  return colorAt(WEIGHT_STOPS, weight);
}

/** The color of a number from -1 to 1, likewise. */
export function signedColor(number) {
  return colorAt(SIGNED_STOPS, (number + 1) / 2);
}

/** Black or white, whichever reads better on a color that is the same in both themes: 4.5 to 1. */
export function textColorOn(color) {
  const [red, green, blue] = color.map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}
