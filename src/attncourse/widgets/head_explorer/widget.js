// HeadExplorer: every head's attention weights for every number of heads that divides d.

import { attentionWeights } from "../shared/attention.js";
import { element, write } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { departure, sayDeparture } from "../shared/origins.js";
import {
  createButton,
  createHeading,
  createLive,
  createNote,
  createPanels,
  createPanes,
  createSwatch,
  createWeightsLegend,
  createWidget,
} from "../shared/parts.js";
import { followerOf, readerOf, setterOf } from "../shared/state.js";
import { createWeightsTable, tellApart } from "../shared/token_map.js";
import { meanLargest, sharpest } from "../shared/weights_picture.js";
import { createChoices, createOwnWords, createTabs, headsOfWidth } from "./controls.js";
import { createHeadMap } from "./map.js";
import { createTokenRow } from "./row.js";
import { MOST_WORDS, readSources, ruledQueriesAndKeys } from "./sources.js";
import { createTiles } from "./tiles.js";

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [T] = read.counts("T");
  const tokens = read.texts("tokens", T);
  const sources = readSources(model, T);
  const { d, q, k } = sources[read.index("source", sources.length)];
  const dividesWidth = (count) => Number.isInteger(count) && count > 0 && d % count === 0;
  const numHeads = read.read("num_heads", dividesWidth, `a divisor of d = ${d}`);
  read.index("head", numHeads);
  const isPin = (head) => Number.isInteger(head) && head >= -1 && head < numHeads;
  read.read("pinned", isPin, `one of 0 to ${numHeads - 1}, or -1`);
  const words = read.list("sentence", (word) => typeof word === "string", "strings", 0);
  if (words.length > MOST_WORDS) throw new Error(`sentence should be ${MOST_WORDS} words at most`);
  read.index("token", shown(model, { tokens, sources }).tokens.length);
  return { tokens, sources, T, d, q, k };
}

/** What stands in the chosen tab: its source, tokens, queries and keys. */
function shown(model, { tokens, sources }) {
  const source = sources[model.get("source")];
  const words = model.get("sentence");
  if (!source.rules || words.length === 0) return { ...source, source, tokens, isOwn: false };
  return {
    ...source,
    source,
    ...ruledQueriesAndKeys(words, source.heads),
    tokens: words,
    isOwn: true,
  };
}

const average = (numbers) => numbers.reduce((a, b) => a + b) / numbers.length;

/** A token in a line that is read aloud. */
const called = (kind, name) => element("bdi", { class: `attn-${kind}` }, name);

/** What depends on the words: pictures, rows and tables with a label a token. */
function createStage(tokens, { read, chooseToken }) {
  const [map, beside] = [0, 1].map(() => createHeadMap(tokens, { read }));
  const row = createTokenRow(tokens, { choose: chooseToken });
  return { map, beside, row, table: createWeightsTable(tokens), named: tellApart(tokens) };
}

function render({ model, el }) {
  const state = readState(model);
  const set = setterOf(model);
  const follower = followerOf(model);
  const places = Object.fromEntries(
    ["chooser", "map", "beside", "row", "table"].map((name) => [name, element("div")]),
  );
  const tabs = createTabs(state.sources, {
    choose(source) {
      const { num_heads } = state.sources[source];
      follower.setAll({ source, num_heads, head: 0, pinned: -1 });
    },
  });
  const choices = createChoices({
    chooseCount(count) {
      if (model.get("pinned") >= count) set("pinned", -1);
      model.set("head", Math.min(model.get("head"), count - 1));
      set("num_heads", count);
    },
    chooseCausal: (causal) => set("causal", causal),
    chooseScale: (toLargest) => set("to_largest", toLargest),
  });
  const own = createOwnWords(state.sources, {
    choose(words) {
      model.set("token", Math.max(0, Math.min(model.get("token"), words.length - 1)));
      set("sentence", words);
    },
  });
  const tiles = createTiles({
    choose(head) {
      set("head", head);
      // Where the large map stands below the tiles it may be out of sight.
      const isBelow = heading.offsetTop > tiles.node.offsetTop + tiles.node.offsetHeight;
      if (isBelow) places.map.scrollIntoView({ block: "nearest" });
    },
  });
  const [caveat, weights] = [element("strong"), element("span")];
  const [origin, note, live] = [createNote(caveat, weights), createNote(), createLive()];
  origin.classList.add("attn-origin");
  note.classList.add("attn-last");
  origin.classList.toggle(
    "attn-trained",
    state.sources.some(({ causal }) => causal !== null),
  );
  live.dir = "ltr"; // whatever way the words run
  const [heading, slice, besideHeading] = [createHeading(), element("code"), createHeading()];
  const pin = createButton("", () =>
    set("pinned", model.get("pinned") === -1 ? model.get("head") : -1),
  );
  const pinHint = createNote("Choose another head to see both.");
  const legend = createWeightsLegend(
    ["attn-favorite", "a row's favorite"],
    ["attn-barred", "blank: may not look"],
  );
  const pinning = element("div", { class: "attn-row" }, pin, pinHint);
  const top = legend.firstChild.lastChild; // the end of the scale
  const panels = createPanels(
    places.chooser,
    element("div", { class: "attn-overview" }, tiles.node),
    element("div", { class: "attn-enlarged" }, heading, places.map, live, legend, pinning),
    places.beside,
    places.row,
  );
  const root = createWidget(
    "head-explorer",
    "What each head looks at",
    createPanes([tabs.node, own.node, choices.node, origin, note], [panels]),
    places.table,
  );
  let [stage, words] = [null, null];
  let now = null; // what is shown: weights of all heads, and from what

  function readCell(cell) {
    const { head, pinned, T, causal, maps } = now;
    for (const map of [stage.map, stage.beside]) map.pointAt(cell);
    const { row, column } = cell;
    const weight = (i) => element("strong", {}, shortNumber(maps[i][row * T + column]));
    function reading() {
      if (causal && column > row) {
        return [element("strong", {}, "0"), " (may not look: it comes later)"];
      }
      if (!now.isComparing) return [weight(head)];
      return [`head ${head + 1} `, weight(head), `, head ${pinned + 1} `, weight(pinned)];
    }
    live.replaceChildren(
      called("query", stage.named(row)),
      " → ",
      called("key", stage.named(column)),
      " ",
      ...reading(),
    );
  }

  /** Say which heads there are, and how sharp the enlarged one is. */
  function sayHead() {
    const { head, d, maps, means, strongest, names, departs } = now;
    const { row, column, weight } = strongest[head];
    live.replaceChildren(
      `${[headsOfWidth(maps.length, d), departs].filter(Boolean).join(", ")}; head ${head + 1}`,
      ...(names[head] ? [` (${names[head]})`] : []),
      `: largest weight of a row ${shortNumber(means[head])} on average; sharpest ${shortNumber(weight)}, `,
      called("query", stage.named(row)),
      " → ",
      called("key", stage.named(column)),
    );
  }

  /** Say which token a token looks at most. */
  function sayRow(favorites, token) {
    const best = favorites.reduce((a, b) => (b.weight > a.weight ? b : a), { weight: -1 });
    live.replaceChildren(
      called("query", stage.named(token)),
      ...(best.weight < 0
        ? [": looks at all tokens alike in every head"]
        : [
            `: sharpest in head ${best.row + 1}, ${shortNumber(best.weight)} → `,
            called("key", stage.named(best.column)),
          ]),
    );
  }

  const chosenToken = () => Math.min(model.get("token"), now.T - 1);

  function drawRow() {
    const token = chosenToken();
    return sayRow(stage.row.draw(token, now, now.options), token);
  }

  const chosenHead = (numHeads) => Math.min(model.get("head"), numHeads - 1);

  function drawHead() {
    const { T, d, maps, options, names, departs } = now;
    const numHeads = maps.length;
    const head = chosenHead(numHeads);
    const pinned = Math.min(model.get("pinned"), numHeads - 1);
    const isComparing = pinned >= 0 && pinned !== head;
    now = { ...now, head, pinned, isComparing };
    const columns = `[:, ${(head * d) / numHeads}:${((head + 1) * d) / numHeads}]`;
    const nameOf = (i) => [createSwatch(i), element("strong", {}, `Head ${i + 1}`)];
    const what = (i) => (names[i] ? `, ${names[i]},` : "");
    heading.replaceChildren(...nameOf(head), what(head), ` of ${numHeads} reads `, slice);
    slice.textContent = `q${columns}, k${columns}`;
    write(pin, pinned < 0 ? `Pin head ${head + 1}` : `Unpin head ${pinned + 1}`);
    pin.setAttribute("aria-pressed", String(pinned >= 0));
    pin.style.visibility = numHeads === 1 ? "hidden" : "";
    pinHint.hidden = pinned < 0 || isComparing;
    besideHeading.replaceChildren(
      ...(isComparing ? [...nameOf(pinned), `${what(pinned)} is pinned`] : []),
    );
    places.beside.replaceChildren(...(isComparing ? [besideHeading, stage.beside.node] : []));
    panels.classList.toggle("attn-pinned", isComparing);
    panels.classList.toggle("attn-single", numHeads === 1);
    tiles.mark(head);
    stage.row.drawArcs(chosenToken(), now);
    const spoken = (i) => [`head ${i + 1}`, departs].filter(Boolean).join(", ");
    stage.map.draw(maps[head], spoken(head), options);
    if (isComparing) stage.beside.draw(maps[pinned], spoken(pinned), options);
    const caption = `Weights of ${spoken(head)}: rows look at columns`;
    const summary = `The numbers of ${spoken(head)}`;
    stage.table.draw({ weights: maps[head], caption, T }, { summary, label: caption });
    sayHead();
  }

  function makeStage(tokens) {
    words = tokens;
    stage = createStage(tokens, { read: readCell, chooseToken: (i) => set("token", i) });
    for (const name of ["map", "row", "table"]) places[name].replaceChildren(stage[name].node);
    places.chooser.replaceChildren(stage.row.chooser);
  }

  function drawAll() {
    const { source, tokens, q, k, d, isOwn } = shown(model, state);
    if (tokens !== words) makeStage(tokens);
    const wanted = model.get("num_heads");
    const numHeads = d % wanted === 0 ? wanted : source.num_heads; // until both traits have changed
    const T = tokens.length;
    const [causal, toLargest] = [model.get("causal"), model.get("to_largest")];
    const maps = Array.from({ length: numHeads }, (_, head) =>
      attentionWeights(q, k, { T, d, numHeads, head, causal }),
    );
    const strongest = maps.map((weights) => sharpest(weights, T, causal));
    const means = maps.map((weights) => meanLargest(weights, T, causal));
    const largest = Math.max(...strongest.map(({ weight }) => weight));
    const mayLook = (row) => (causal ? row + 1 : T);
    const options = { T, rows: T, mayLook, causal, top: toLargest ? largest : 1 };
    const departs = departure(source, numHeads, causal);
    const names = !departs && numHeads === source.heads.length ? source.heads : [];
    const head = chosenHead(numHeads);
    now = { T, d, maps, head, means, strongest, names, options, causal, departs };
    tabs.draw(model.get("source"));
    own.draw(source, isOwn);
    choices.draw(numHeads, d, causal, toLargest);
    const inTiles = tiles.draw(now, options);
    top.data = toLargest ? `${shortNumber(largest)}, the largest here` : "1";
    legend.lastChild.hidden = !causal;
    const warning = /^random/i.test(source.origin) ? " No head means anything yet." : "";
    write(caveat, sayDeparture(departs));
    write(weights, `Weights: ${source.origin}.${warning}`);
    write(
      note,
      `d = ${d} columns, d_k = ${d} / ${numHeads} = ${d / numHeads} for each head. ` +
        "Each row of each map sums to 1. A map's number is a row's largest weight, on average; " +
        `${shortNumber(average(means))} over all heads.${inTiles ? "" : " Dots only in the large map."}`,
    );
    drawRow();
    drawHead();
  }

  drawAll();
  el.replaceChildren(root);
  const stops = [
    follower.on(["source", "sentence", "num_heads", "causal", "to_largest"], drawAll),
    follower.on(["head", "pinned"], drawHead),
    follower.on(["token"], drawRow),
  ];
  return () => stops.forEach((stop) => stop());
}

export default { render };
