// NameLab's made-up names: drawn from the model as it is, each with the rules that it keeps.

import { BOUNDARY, names } from "../engine/names.js";
import { sfc32 } from "../engine/rng.js";
import { goneOn } from "../engine/sampling.js";
import { element, write } from "../shared/dom.js";
import { inWords } from "../shared/numbers.js";
import { createButton, createControls, createHeading, createSlider } from "../shared/parts.js";

const SHOWN = 8; // of the names
const ALL = 100; // names that the share is counted over
const TURN = 8; // milliseconds of drawing, then the page has the next ones for itself
const REST = 16;
const OF_NAMES = 2; // the stream of a seed from which names are drawn

/** What a name is worth, in words. */
function verdictOn(name) {
  const broken = names.brokenRules(name);
  return broken.length === 0 ? "✓ keeps all four" : `✗ breaks ${inWords(broken)}`;
}

/**
 * Draw names in turns, never two lots at a time: `show(made)` is told those so far. What is `wanted`
 * next begins once a lot is over, or at once.
 */
function createDrawing(show) {
  let made = null; // of the lot that is drawn
  let wanted = null;
  let timer;

  function begin() {
    const { model, options, seed } = wanted;
    const lot = { model, options, rng: sfc32(seed, OF_NAMES) };
    wanted = null;
    made = [];
    goOn(lot);
  }
  function goOn({ model, options, rng }) {
    const end = performance.now() + TURN;
    while (made.length < ALL && performance.now() < end) {
      const ids = goneOn(model, [BOUNDARY], BOUNDARY, options, rng);
      made.push(names.spelled(ids));
    }
    show(made);
    if (made.length < ALL) timer = setTimeout(() => goOn({ model, options, rng }), REST);
    else {
      made = null;
      if (wanted !== null) begin();
    }
  }
  function want(lot, isAtOnce) {
    wanted = lot;
    if (made !== null && !isAtOnce) return;
    clearTimeout(timer);
    begin();
  }
  return { want, end: () => clearTimeout(timer) };
}

/** The list, and what governs it: `set(trait, value)` is told what a reader chooses. */
export function createSamples(set, hottest) {
  const rows = Array.from({ length: SHOWN }, () => {
    const name = element("span", { class: "attn-made" });
    const verdict = element("span", { class: "attn-verdict" });
    return { name, verdict, node: element("li", {}, name, verdict) };
  });
  const share = element("p", { class: "attn-kept-share" });
  const letters = names.vocabulary.length;
  const temperature = createSlider("Temperature", {
    max: 10 * hottest,
    ticks: ["0", "1", "2"],
    choose: (position) => set("temperature", position / 10),
  });
  const topK = createSlider("Top-k", {
    min: 1,
    max: letters,
    choose: (position) => set("top_k", position),
  });
  let place = 0; // among the seeds of draws
  const again = createButton("Sample again", () => set("draw", (place + 1) % 1000));
  const list = element("ul", { class: "attn-samples" }, ...rows.map((row) => row.node));
  const controls = createControls(temperature.node, topK.node, again);
  const node = element("div", {}, createHeading("Names that it makes up"), list, share);

  const drawing = createDrawing((made) => {
    if (made.length < SHOWN) return;
    rows.forEach(({ name, verdict, node: row }, i) => {
      const text = verdictOn(made[i]);
      write(name, made[i] || "(no letter)");
      write(verdict, text);
      row.classList.toggle("attn-broken", !text.startsWith("✓"));
    });
    if (made.length < ALL) return;
    list.removeAttribute("aria-busy");
    const kept = made.filter((name) => names.brokenRules(name).length === 0).length;
    write(share, `${kept} of ${ALL} names keep all four rules.`);
  });

  /** Show what a model makes up; a reader who `changed` something doesn't wait. */
  function draw(model, state, changed) {
    place = state.draw;
    temperature.draw(Math.round(10 * state.temperature), state.temperature.toFixed(1));
    topK.draw(state.topK, state.topK === letters ? `${letters}, all` : String(state.topK));
    const options = { temperature: state.temperature, topK: state.topK };
    list.setAttribute("aria-busy", "true"); // until all names are there
    drawing.want({ model, options, seed: state.draw }, changed);
  }
  return { node, controls, draw, end: drawing.end };
}
