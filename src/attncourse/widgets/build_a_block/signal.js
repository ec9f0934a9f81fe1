// BuildABlock's signal: its way up the stack that stands there, stop by stop, with what it measures.

import { element } from "../shared/dom.js";
import { createButton, createNote, createQuietButton } from "../shared/parts.js";
import { createFold, createTable } from "../shared/tables.js";
import { formula, numberText, variantName } from "./words.js";

const PAUSE = 900; // milliseconds at a stop
const PLACES = 8; // what a block's input and each stop in it measure, and the norm after the last one
const WIRINGS = [false, true].flatMap((residual) =>
  [null, "pre", "post"].map((norm) => [residual, norm]),
);
const LAST_STOP = 14;

/** The signal of each wiring, checked: `measuredAt(residual, norm, block, place)` is [size, cosine]. */
export function readSignal(read, depths) {
  const blocks = [...new Set([1, ...depths])];
  const numbers = read.numbers("signal", WIRINGS.length * blocks.length * PLACES * 2, { size: 8 });
  read.index("stop", LAST_STOP + 1);
  const origin = read.text("signal_origin");
  function measuredAt(residual, norm, block, place) {
    const wiring = WIRINGS.findIndex(([r, n]) => r === residual && n === norm);
    const at = ((wiring * blocks.length + blocks.indexOf(block)) * PLACES + place) * 2;
    return [numbers[at], numbers[at + 1]];
  }
  return { origin, measuredAt };
}

/** The parts of a block in a signal's order: [name, sub-layer, slot of the diagram]. */
export function partsOf(residual, norm) {
  return ["attention", "feed-forward"].flatMap((layer, i) =>
    [norm === "pre" && ["norm", i, 1], [layer, i, 2], residual && ["sum", i, 3]]
      .concat([norm === "post" && ["norm", i, 4]])
      .filter(Boolean),
  );
}

/** All stops of a stack: {name, block, layer, slot, size, cosine}; blocks between are passed over. */
export function wayUp({ measuredAt }, residual, norm, depth) {
  const parts = partsOf(residual, norm);
  const stop = (name, block, place, layer, slot) => {
    const [size, cosine] = measuredAt(residual, norm, block, place);
    return { name, block, layer, slot, size, cosine };
  };
  const blocks = depth > 1 ? [1, depth] : [1];
  const inBlocks = blocks.flatMap((block) =>
    parts.map(([name, layer, slot], i) =>
      stop(`block ${block}, after ${name === "sum" ? "the sum" : name}`, block, i + 1, layer, slot),
    ),
  );
  const last = norm === "pre" ? [stop("after the last norm", depth, PLACES - 1, 2, 0)] : [];
  return [stop("tokens in", 1, 0, 0, 0), ...inBlocks, ...last];
}

/** Step and play, and what the signal measures where it is; `choose(stop)` is told. */
export function createSignal(signal, { choose }) {
  let [way, at] = [[], 0];
  let timer = null;
  const goOn = () => at < way.length - 1 && choose(at + 1);
  const step = createButton("Step", goOn);
  const play = createButton("Play", () => (timer === null ? start() : halt()));
  const back = createQuietButton("Back to the start", () => choose(0));
  play.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches; // Step does the same
  const said = element("p", { class: "attn-signal", role: "status" });
  const table = createFold(({ caption, rows }) => [
    createTable(caption, ["where", "size", "cosine between tokens"], rows),
  ]);

  function start() {
    if (at === way.length - 1) choose(0);
    play.textContent = "Pause";
    timer = setInterval(goOn, PAUSE);
  }
  function halt() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  function draw(residual, norm, depth, stop) {
    way = wayUp(signal, residual, norm, depth);
    at = Math.min(stop, way.length - 1);
    const { name, size, cosine } = way[at];
    if (at === way.length - 1) halt();
    step.setAttribute("aria-disabled", String(at === way.length - 1));
    back.setAttribute("aria-disabled", String(at === 0));
    said.replaceChildren(
      `Signal, ${name}: size `,
      element("strong", {}, numberText(size, "size")),
      ", cosine between tokens ",
      element("strong", {}, numberText(cosine, "cosine")),
    );
    const caption = `The signal in ${variantName(residual, norm)}, ${formula(residual, norm)}`;
    const rows = way.map((one) => [
      one.name,
      numberText(one.size, "size"),
      numberText(one.cosine, "cosine"),
    ]);
    table.draw(
      { caption, rows },
      { summary: "The signal, stop by stop", label: "Stops of the signal" },
    );
    return way[at];
  }
  const attributes = {
    class: "attn-row",
    role: "group",
    "aria-label": "A signal through the stack",
  };
  const node = element(
    "div",
    { class: "attn-send" },
    element("div", attributes, step, play, back),
    said,
    createNote(`Size: root mean square. ${signal.origin}.`),
  );
  return { node, table: table.node, draw, halt };
}
