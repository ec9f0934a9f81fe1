// CacheCalculator's controls: a slider for each size, and what a number takes.

import { divisors } from "../shared/attention.js";
import { element } from "../shared/dom.js";
import { wholeText } from "../shared/numbers.js";
import {
  createButtonGroup,
  createCheckbox,
  createControls,
  createSlider,
} from "../shared/parts.js";
import { setterOf } from "../shared/state.js";
import { usualLatent } from "./sizes.js";

export const BYTES = [4, 2, 1]; // per number

// What sliders stop at. Other numbers come from Python; then a slider stands at the nearest stop.
const upTo = (most) => Array.from({ length: most }, (_, i) => i + 1);
const HEADS = [...upTo(12), 16, 20, 24, 25, 32, 40, 48, 56, 64, 71, 80, 96, 112, 128];
const WIDTHS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512];
const LATENT_WIDTHS = [...WIDTHS, 768, 1024, 1536, 2048];
const MEMORIES = [1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 320, 640, 1024];

/** 1, 2, 3, 4, 6, 8, 12 and so on, up to a power of 2. */
function doubled(most) {
  const numbers = upTo(Math.log2(most)).flatMap((power) => [2 ** power, 1.5 * 2 ** power]);
  return [1, ...numbers.filter((number) => number <= most)];
}

/** A slider that stops at some numbers; `choose(number)` is told which. */
function createStops(name, stops, choose, textOf = wholeText) {
  let offered = stops;
  const slider = createSlider(name, {
    max: stops.length - 1,
    choose: (position) => choose(offered[position]),
  });
  const log = (number) => Math.log(number || 0.5); // 0 is a stop below 1
  function draw(number) {
    const distances = offered.map((stop) => Math.abs(log(stop) - log(number)));
    slider.draw(distances.indexOf(Math.min(...distances)), textOf(number));
  }
  function offer(others) {
    offered = others;
    slider.fit(others.length - 1, []);
  }
  return { node: slider.node, draw, offer };
}

/** Sliders and buttons for all sizes. */
export function createSizes(model) {
  const set = setterOf(model);
  const inGibibytes = (number) => `${wholeText(number)} GiB`;
  /** As many key heads as before, where those divide other query heads; none shared: none now. */
  function chooseHeads(h) {
    const [before, own] = model.get("heads");
    const fitting = divisors(h).findLast((heads) => heads <= own);
    set("heads", [h, own === before ? h : fitting]);
  }
  const layers = createStops("Layers", upTo(128), (number) => set("layers", number));
  const width = createStops("Head width", WIDTHS, (number) => set("d_k", number));
  const heads = createStops("Query heads", HEADS, chooseHeads);
  const kvHeads = createStops("KV heads", [1], (number) =>
    set("heads", [model.get("heads")[0], number]),
  );
  const isLatent = createCheckbox("A latent vector in place of keys and values (MLA)", (checked) =>
    set("latent", checked ? usualLatent(model.get("d_k")) : []),
  );
  const vector = createStops("Latent vector", LATENT_WIDTHS, (number) =>
    set("latent", [number, model.get("latent")[1]]),
  );
  const key = createStops("Position key", [0, ...WIDTHS], (number) =>
    set("latent", [model.get("latent")[0], number]),
  );
  const tokens = createStops("Tokens", doubled(2 ** 20), (number) => set("tokens", number));
  const sequences = createStops("Sequences", doubled(128), (number) => set("sequences", number));
  const memory = createStops("Memory", MEMORIES, (number) => set("memory", number), inGibibytes);
  const names = BYTES.map((bytes) => `${8 * bytes} bits`);
  const bytes = createButtonGroup("Bits of a number", names, (i) =>
    set("bytes_per_number", BYTES[i]),
  );
  const bits = element("div", { class: "attn-bits" }, "Numbers", bytes.node);
  const sliders = [layers, width, heads, kvHeads].map(({ node }) => node);
  const latentSliders = [vector, key].map(({ node }) => node);
  const useSliders = [tokens, sequences, memory].map(({ node }) => node);
  const node = createControls(...sliders, isLatent.node, ...latentSliders, ...useSliders, bits);

  function draw(state) {
    const [h, own] = state.heads;
    const isOn = state.latent !== null;
    layers.draw(state.layers);
    width.draw(state.d_k);
    heads.draw(h);
    kvHeads.offer(divisors(h));
    kvHeads.draw(own);
    kvHeads.node.hidden = isOn;
    isLatent.draw(isOn);
    for (const slider of latentSliders) slider.hidden = !isOn;
    if (isOn) [vector, key].forEach((slider, i) => slider.draw(state.latent[i]));
    tokens.draw(state.tokens);
    sequences.draw(state.sequences);
    memory.draw(state.memory);
    bytes.draw(BYTES.indexOf(state.bytesPerNumber));
  }
  return { node, draw };
}
