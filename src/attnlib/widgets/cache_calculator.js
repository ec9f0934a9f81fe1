// CacheCalculator: how many bytes the keys and values of a generation take.

import { byteText, usualLatent, waysOf, wholeText } from "./cache_calculator_sizes.js";
import { divisors } from "./shared/attention.js";
import { element, write } from "./shared/dom.js";
import {
  createButtonGroup,
  createCheckbox,
  createControls,
  createHeading,
  createLive,
  createNote,
  createSlider,
  createWidget,
} from "./shared/parts.js";
import { followerOf, readerOf, setterOf } from "./shared/state.js";
import { createFold, createTable } from "./shared/tables.js";

const BYTES = [4, 2, 1]; // per number
const BYTE_NAMES = ["32 bits", "16 bits", "8 bits"];
const TRAITS = [
  "layers",
  "heads",
  "d_k",
  "latent",
  "tokens",
  "sequences",
  "bytes_per_number",
  "memory",
];

// What sliders stop at. Other numbers come from Python, and a slider stands at the nearest stop.
const upTo = (most) => Array.from({ length: most }, (_, i) => i + 1);
const doubled = (most, ...steps) =>
  Array.from({ length: Math.log2(most) }, (_, i) => steps.map((step) => step * 2 ** i)).flat();
const HEADS = [...upTo(12), 16, 20, 24, 25, 32, 40, 48, 56, 64, 71, 80, 96, 112, 128];
const WIDTHS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512];
const TOKENS = [...doubled(2 ** 20, 1, 1.5).filter(Number.isInteger), 2 ** 20];
const SEQUENCES = [...doubled(128, 1, 1.5).filter(Number.isInteger), 128];
const MEMORIES = [1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 320, 640, 1024];
const LATENT_WIDTHS = [...WIDTHS, 768, 1024, 1536, 2048];

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const isWhole = (value, from, to) => Number.isInteger(value) && value >= from && value <= to;
  const areHeads = (value) =>
    Array.isArray(value) &&
    value.length === 2 &&
    isWhole(value[0], 1, 128) &&
    isWhole(value[1], 1, value[0]) &&
    value[0] % value[1] === 0;
  const isLatent = (value) =>
    Array.isArray(value) &&
    (value.length === 0 ||
      (value.length === 2 && isWhole(value[0], 1, 2048) && isWhole(value[1], 0, 512)));
  const isModel = (value) => typeof value?.name === "string" && typeof value.source === "string";
  const latent = read.read("latent", isLatent, "[] or [d_c, d_R]");
  return {
    models: read.list("models", isModel, "models"),
    layers: read.whole("layers", 128),
    heads: read.read("heads", areHeads, "query heads and KV heads that divide them"),
    d_k: read.whole("d_k", 512),
    latent: latent.length > 0 ? latent : null,
    tokens: read.whole("tokens", 2 ** 20),
    sequences: read.whole("sequences", 128),
    bytesPerNumber: read.read(
      "bytes_per_number",
      (n) => BYTES.includes(n),
      `one of ${BYTES.join(", ")}`,
    ),
    memory: read.whole("memory", 1024),
  };
}

/** The model whose sizes these are, or -1. */
function modelOf({ models, layers, heads, d_k, latent }) {
  const sizes = [layers, heads, d_k, latent ?? []].join();
  return models.findIndex(
    (known) =>
      [known.layers, known.num_heads, known.num_kv_heads, known.d_k, known.latent].join() === sizes,
  );
}

/** A slider that stops at some numbers; `choose(number)` is told which. */
function createStops(name, stops, choose, textOf = wholeText) {
  let offered = stops;
  const slider = createSlider(name, {
    max: stops.length - 1,
    choose: (position) => choose(offered[position]),
  });
  function draw(number) {
    const distances = offered.map((stop) => Math.abs(Math.log((stop || 0.5) / (number || 0.5))));
    slider.draw(distances.indexOf(Math.min(...distances)), textOf(number));
  }
  function offer(other) {
    offered = other;
    slider.fit(other.length - 1, []);
  }
  return { node: slider.node, draw, offer };
}

/** All sliders and buttons of the sizes. */
function createSizes(model) {
  const set = setterOf(model);
  const readHeads = () => readState(model).heads;
  const stops = {
    layers: createStops("Layers", upTo(128), (number) => set("layers", number)),
    heads: createStops("Query heads", HEADS, (number) => {
      const [h, own] = readHeads();
      const shared = divisors(number).findLast((heads) => heads <= own);
      set("heads", [number, own === h ? number : shared]);
    }),
    d_k: createStops("Width of a head", WIDTHS, (number) => set("d_k", number)),
    tokens: createStops("Tokens", TOKENS, (number) => set("tokens", number)),
    sequences: createStops("Sequences", SEQUENCES, (number) => set("sequences", number)),
    memory: createStops(
      "Memory",
      MEMORIES,
      (number) => set("memory", number),
      (number) => `${number} GiB`,
    ),
  };
  const kvHeads = createStops("KV heads", [1], (number) => set("heads", [readHeads()[0], number]));
  const vector = createStops("Latent vector", LATENT_WIDTHS, (number) =>
    set("latent", [number, model.get("latent")[1]]),
  );
  const key = createStops("Key with position", [0, ...WIDTHS], (number) =>
    set("latent", [model.get("latent")[0], number]),
  );
  const isLatent = createCheckbox("A latent vector in place of keys and values (MLA)", (checked) =>
    set("latent", checked ? usualLatent(model.get("d_k")) : []),
  );
  const bytes = createButtonGroup("Size of a number", BYTE_NAMES, (i) =>
    set("bytes_per_number", BYTES[i]),
  );
  const { layers, heads, d_k, tokens, sequences, memory } = stops;
  const shape = [layers, heads, kvHeads, d_k, vector, key].map(({ node }) => node);
  const use = [tokens, sequences, memory].map(({ node }) => node);
  const node = createControls(...shape, isLatent.node, ...use, bytes.node);

  function draw(state) {
    const [h, own] = state.heads;
    for (const [name, slider] of Object.entries(stops))
      slider.draw(name === "heads" ? h : state[name]);
    kvHeads.offer(divisors(h));
    kvHeads.draw(own);
    isLatent.draw(state.latent !== null);
    kvHeads.node.hidden = state.latent !== null;
    for (const [i, slider] of [vector, key].entries()) {
      slider.node.hidden = state.latent === null;
      if (state.latent) slider.draw(state.latent[i]);
    }
    bytes.draw(BYTES.indexOf(state.bytesPerNumber));
  }
  return { node, draw };
}

/** "8 KV heads", "a vector of 512 and a key of 64" */
function sayWay({ kvHeads, latent }) {
  if (latent) return `${latent[0]} + ${latent[1]} numbers`;
  return `${kvHeads} KV head${kvHeads === 1 ? "" : "s"}`;
}

/** A bar for each way to share heads, the longest for the largest. */
function createBars() {
  const node = element("ul", { class: "attn-ways" });
  function draw(ways) {
    const largest = Math.max(...ways.map(({ inAll }) => inAll));
    const rows = ways.map((way) => {
      const bar = element("span", { class: "attn-bar" });
      bar.style.width = `${(100 * way.inAll) / largest}%`;
      const row = element(
        "li",
        {},
        element("span", {}, element("strong", {}, way.name), ` ${sayWay(way)}`),
        element("span", { class: "attn-room", "aria-hidden": "true" }, bar),
        element("span", {}, byteText(way.inAll)),
      );
      if (way.isOwn) row.setAttribute("aria-current", "true");
      return row;
    });
    node.replaceChildren(...rows);
  }
  return { node, draw };
}

/** The formula with the reader's numbers, a line per token and a line in all. */
function createFormula() {
  const lines = [element("p"), element("p")];
  const node = element("div", { class: "attn-formula" }, ...lines);
  function draw({ layers, d_k, tokens, sequences, bytesPerNumber }, own) {
    const { latent, kvHeads, perToken, inAll } = own;
    const perLayer = latent
      ? `(${latent[0]} + ${latent[1]}) numbers`
      : `2 (key, value) × ${kvHeads} KV heads × ${d_k} numbers`;
    const factors = `${layers} layers × ${perLayer} × ${bytesPerNumber} bytes`;
    write(lines[0], `${factors} = ${wholeText(perToken)} bytes = ${byteText(perToken)} per token`);
    const times = `× ${wholeText(tokens)} tokens × ${sequences} sequences`;
    write(lines[1], `${byteText(perToken)} ${times} = ${byteText(inAll)}`);
  }
  return { node, draw };
}

/** The ways to share heads as a table, in a fold. */
function createNumbers() {
  return createFold(({ ways, state }) => {
    const rows = ways.map((way) => [
      `${way.name}, ${sayWay(way)}`,
      wholeText(way.perLayer),
      wholeText(way.perToken),
      byteText(way.perSequence),
      byteText(way.inAll),
      String(Number((way.inAll / ways[0].inAll).toPrecision(3))),
      wholeText(way.fitting),
    ]);
    const columns = [
      "",
      "numbers per token and layer",
      "bytes per token",
      "per sequence",
      "in all",
      "of MHA",
      `sequences in ${state.memory} GiB`,
    ];
    return [createTable("The same model, with heads that share in other ways", columns, rows)];
  });
}

/** What the cache takes, and how many sequences fit, in a sentence. */
function sayAll({ models, tokens, memory, ...state }, known, own) {
  const name = models[known]?.name ?? "This model";
  const text = `${wholeText(tokens)} tokens`;
  const fits =
    own.fitting === 0
      ? `Not one sequence of ${text} fits into ${memory} GiB.`
      : `${memory} GiB hold ${wholeText(own.fitting)} sequence${own.fitting === 1 ? "" : "s"} of ${text}.`;
  const many = state.sequences === 1 ? "1 sequence" : `${state.sequences} sequences`;
  return `${name}: ${byteText(own.inAll)} for ${many} of ${text}. ${fits}`;
}

function render({ model, el }) {
  const { models } = readState(model);
  const { on, setAll } = followerOf(model);
  const names = models.map(({ name }) => name);
  const choice = createButtonGroup("Models", names, (i) => {
    const { layers, num_heads, num_kv_heads, d_k, latent, tokens } = models[i];
    setAll({ layers, heads: [num_heads, num_kv_heads], d_k, latent, tokens });
  });
  const source = createNote();
  const sizes = createSizes(model);
  const formula = createFormula();
  const bars = createBars();
  const live = createLive();
  const table = createNumbers();

  function draw() {
    const state = readState(model);
    const known = modelOf(state);
    const ways = waysOf(state);
    const own = ways.find(({ isOwn }) => isOwn);
    choice.draw(known);
    source.textContent =
      known < 0
        ? "Sizes of your own."
        : `Source: ${models[known].source}. Its longest context: ${wholeText(models[known].tokens)} tokens.`;
    sizes.draw(state);
    formula.draw(state, own);
    bars.draw(ways);
    live.textContent = sayAll(state, known, own);
    table.draw({ ways, state }, { label: "Ways to share heads" });
  }

  draw();
  el.replaceChildren(
    createWidget(
      "cache-calculator",
      "How large is the cache of keys and values?",
      choice.node,
      source,
      sizes.node,
      formula.node,
      live,
      createHeading("The same model, with heads that share in other ways"),
      bars.node,
      createNote(
        "1 KiB is 1024 bytes, 1 MiB 1024 KiB, 1 GiB 1024 MiB. What the model's parameters take comes " +
          "on top and isn't counted. MLA, where the model doesn't have it: by DeepSeek-V2's rule, " +
          "a vector of 4 d_k and a key of d_k / 2.",
      ),
      table.node,
    ),
  );
  return on(TRAITS, draw);
}

export default { render };
