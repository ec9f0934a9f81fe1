// ClockHands: two positions as hands of clocks, each clock slower than the one before.

import { element, svgElement } from "../shared/dom.js";
import { shortNumber, wholeText } from "../shared/numbers.js";
import {
  createButton,
  createControls,
  createLive,
  createNote,
  createSlider,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";

const LAST = 63; // the largest position
const WIDTHS = [4, 8, 16];
const BASE = 10_000;
const [WIDE, TALL] = [600, 120]; // of the curve's drawing, in units of its own
const KEY_START = Math.atan2(0.8, 0.6); // the key's pairs are (0.6, 0.8), the query's (1, 0)
const NOTES = {
  false:
    "Wide hands: place m. Narrow hands: place n. A pair of numbers is how far its hand " +
    "points to the right, and how far up. Below: how many tokens a turn takes.",
  true:
    "Wide hands: a query at m, (1, 0) in every pair before it is turned. Narrow hands: a key at n, " +
    "(0.6, 0.8) before. The first number of a pair points up, the second to the right. Below: how " +
    "many tokens a turn takes.",
};

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  return {
    position: read.index("position", LAST + 1),
    other: read.index("other", LAST + 1),
    d: read.read("d", (value) => WIDTHS.includes(value), `one of ${WIDTHS.join(", ")}`),
    rotary: read.read("rotary", (value) => typeof value === "boolean", "true or false"),
  };
}

/** By how much each of d / 2 clocks turns per token. */
export function speedsOf(d) {
  return Array.from({ length: d / 2 }, (_, i) => BASE ** ((-2 * i) / d));
}

/** The angles of both vectors' hands, clockwise from the top. */
export function anglesOf({ position, other, d, rotary }) {
  const speeds = speedsOf(d);
  const start = rotary ? KEY_START : 0;
  return [speeds.map((speed) => position * speed), speeds.map((speed) => start + other * speed)];
}

/** A vector's pairs of numbers, which are its hands. */
export function pairsOf(angles, rotary) {
  return angles.map((angle) => {
    const [right, up] = [Math.sin(angle), Math.cos(angle)];
    return rotary ? [up, right] : [right, up];
  });
}

/** The dot product of two vectors of pairs. */
export function dotProduct(left, right) {
  return left.reduce((sum, [a, b], i) => sum + a * right[i][0] + b * right[i][1], 0);
}

/** The product of both vectors at each distance m − n from −LAST to LAST: it depends on nothing else. */
export function productsByDistance({ d, rotary }) {
  return Array.from({ length: 2 * LAST + 1 }, (_, i) => {
    const [position, other] = i < LAST ? [0, LAST - i] : [i - LAST, 0];
    const angles = anglesOf({ position, other, d, rotary });
    return dotProduct(...angles.map((turned) => pairsOf(turned, rotary)));
  });
}

/** "−0.42", with two decimals and never a negative zero. */
function numberText(number) {
  return shortNumber(Math.abs(number) < 0.005 ? 0 : number);
}

/** One clock with two hands, and below it the numbers that they are. */
function createClock(speed) {
  const hand = (name) => svgElement("line", { x1: 50, y1: 50, x2: 50, y2: 8, class: name });
  const hands = [hand("attn-wide"), hand("attn-narrow")];
  const top = svgElement("line", { x1: 50, y1: 0, x2: 50, y2: 6, class: "attn-top" });
  const face = svgElement("circle", { cx: 50, cy: 50, r: 48 });
  const turn = (2 * Math.PI) / speed;
  const numbers = [
    element("span", { class: "attn-query" }),
    element("span", { class: "attn-key" }),
  ];
  const node = element(
    "div",
    {},
    svgElement("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, face, top, ...hands),
    ...numbers,
    element(
      "span",
      { class: "attn-turn" },
      `turn: ${turn < 10 ? turn.toFixed(1) : wholeText(Math.round(turn))}`,
    ),
  );
  function draw(angles, pairs) {
    hands.forEach((line, i) => {
      line.style.transform = `rotate(${angles[i]}rad)`;
      numbers[i].textContent = pairs[i].map(numberText).join(" ");
    });
  }
  return { node, draw };
}

/** Both positions by one token on or back, which changes no distance. */
function createSteps(move) {
  const steps = [-1, 1].map((by) => {
    const node = createButton(
      by < 0 ? "\u2212 both" : "both +",
      () => node.ariaDisabled === "true" || move(by),
    );
    return { node, by };
  });
  function draw(places) {
    for (const { node, by } of steps) {
      node.ariaDisabled = String(!places.every((place) => place + by >= 0 && place + by <= LAST));
    }
  }
  return { node: element("div", { class: "attn-row" }, ...steps.map(({ node }) => node)), draw };
}

/** The product over the distance, with a dot at the distance of the two hands. */
function createProducts() {
  const [line, dot] = [
    svgElement("polyline", { class: "attn-products-line" }),
    svgElement("path", { class: "attn-products-dot" }),
  ];
  const zero = svgElement("line", { x1: 0, x2: WIDE, y1: TALL / 2, y2: TALL / 2 });
  const here = svgElement("line", { x1: WIDE / 2, x2: WIDE / 2, y1: 0, y2: TALL });
  const size = { viewBox: `-6 -6 ${WIDE + 12} ${TALL + 12}`, preserveAspectRatio: "none" };
  const svg = svgElement("svg", { ...size, role: "img" }, zero, here, line, dot);
  const ends = [`\u2212${LAST}`, "distance m \u2212 n: 0", String(LAST)];
  const labels = ends.map((text) => element("span", {}, text));
  const node = element(
    "div",
    { class: "attn-products" },
    svg,
    element("div", { class: "attn-products-ends" }, ...labels),
  );

  function draw(state) {
    const products = productsByDistance(state);
    const place = (i) => [
      (WIDE * i) / (products.length - 1),
      TALL * (0.5 - products[i] / state.d), // a product of d / 2 pairs of length 1 is at most d / 2
    ];
    line.setAttribute("points", products.map((_, i) => place(i).join()).join(" "));
    const i = state.position - state.other + LAST;
    dot.setAttribute("d", `M${place(i).join(" ")}h0`);
    svg.setAttribute(
      "aria-label",
      `The product over the distance, from ${numberText(Math.min(...products))} to ` +
        `${numberText(Math.max(...products))}; a dot at ${numberText(products[i])}`,
    );
  }
  return { node, draw };
}

function render({ model, el }) {
  readState(model);
  const set = setterOf(model);
  const sliderOf = (name, trait) =>
    createSlider(name, { max: LAST, choose: (place) => set(trait, place) });
  const [position, other] = [sliderOf("Place m", "position"), sliderOf("Place n", "other")];
  const width = createSlider("Width d", {
    max: WIDTHS.length - 1,
    choose: (i) => set("d", WIDTHS[i]),
  });
  const steps = createSteps((by) => {
    for (const trait of ["position", "other"]) model.set(trait, model.get(trait) + by);
    model.save_changes();
  });
  const note = createNote();
  const row = element("div", { class: "attn-clocks" });
  const products = createProducts();
  const live = createLive();
  let clocks = [];

  function draw() {
    const state = readState(model);
    position.draw(state.position, `${state.position}`);
    other.draw(state.other, `${state.other}`);
    width.draw(WIDTHS.indexOf(state.d), `${state.d}`);
    steps.draw([state.position, state.other]);
    note.textContent = NOTES[state.rotary];
    if (clocks.length !== state.d / 2) {
      clocks = speedsOf(state.d).map(createClock);
      row.replaceChildren(...clocks.map(({ node }) => node));
    }
    const angles = anglesOf(state);
    const pairs = angles.map((turned) => pairsOf(turned, state.rotary));
    clocks.forEach((clock, i) => {
      clock.draw(
        angles.map((turned) => turned[i]),
        pairs.map((vector) => vector[i]),
      );
    });
    products.draw(state);
    const [m, n] = [state.position, state.other];
    const factors = state.rotary ? "query · key" : `PE(${m}) · PE(${n})`;
    const distance = m - n;
    live.textContent =
      `${factors} = ${numberText(dotProduct(...pairs))}, ` +
      `at distance m \u2212 n = ${distance < 0 ? "\u2212" : ""}${Math.abs(distance)}`;
  }

  draw();
  el.replaceChildren(
    createWidget(
      "clock-hands",
      "Positions as hands of clocks",
      createControls(position.node, other.node, steps.node, width.node),
      note,
      element("div", { class: "attn-turned" }, row, live, products.node),
    ),
  );
  return redrawOn(model, ["position", "other", "d", "rotary"], draw);
}

export default { render };
