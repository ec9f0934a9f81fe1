// CacheCalculator: how many bytes the keys and values of a generation take.

import { element, write } from "../shared/dom.js";
import { many, wholeText } from "../shared/numbers.js";
import {
  createButtonGroup,
  createHeading,
  createLive,
  createNote,
  createPanes,
  createWidget,
} from "../shared/parts.js";
import { followerOf, readerOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { BYTES, createSizes } from "./controls.js";
import { byteText, waysOf } from "./sizes.js";

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

/** The widget's state, checked; the limits are those of widget.py. */
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

/** "8 KV heads", "512 + 64 numbers" */
function sayWay({ kvHeads, latent }) {
  if (latent) return `${latent.map(wholeText).join(" + ")} numbers`;
  return many(kvHeads, "KV head");
}

/** A bar for each way to share heads, the longest for the largest. */
function createBars() {
  const node = element("ul", { class: "attn-ways", "aria-label": "Ways to share heads" });
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
      ? `(${latent.map(wholeText).join(" + ")}) numbers`
      : `2 (key, value) × ${many(kvHeads, "KV head")} × ${many(d_k, "number")}`;
    const factors = `${many(layers, "layer")} × ${perLayer} × ${many(bytesPerNumber, "byte")}`;
    write(lines[0], `${factors} = ${wholeText(perToken)} bytes = ${byteText(perToken)} per token`);
    const times = `× ${many(tokens, "token")} × ${many(sequences, "sequence")}`;
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
      `sequences in ${wholeText(state.memory)} GiB`,
    ];
    return [createTable("The same model, with heads shared in other ways", columns, rows)];
  });
}

/** What the cache takes, and how many sequences fit, in two sentences. */
function sayAll({ models, tokens, sequences, memory }, known, own) {
  const name = models[known]?.name ?? "This model";
  const use = `${many(sequences, "sequence")} of ${many(tokens, "token")}`;
  const fits =
    own.fitting === 0
      ? `Not one such sequence fits into ${wholeText(memory)} GiB.`
      : `In ${wholeText(memory)} GiB there is room for ${many(own.fitting, "such sequence")}.`;
  return `${name}: ${byteText(own.inAll)} for ${use}. ${fits}`;
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
      createPanes(
        [choice.node, source, sizes.node],
        [
          live,
          createHeading("The same model, with heads shared in other ways"),
          bars.node,
          formula.node,
          createNote(
            "1 KiB is 1,024 bytes, 1 MiB 1,024 KiB, 1 GiB 1,024 MiB. The model's parameters take " +
              "more, which isn't counted. MLA, in models without it, follows DeepSeek-V2's rule: " +
              "a vector of 4 d_k and a key of d_k / 2.",
          ),
        ],
      ),
      table.node,
    ),
  );
  return on(TRAITS, draw);
}

export default { render };
