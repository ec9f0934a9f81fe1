// GptSteps: a debugger that steps through a GPT's plain loop, token by token.

import { element } from "../shared/dom.js";
import {
  createButton,
  createControls,
  createLegend,
  createLive,
  createNote,
  createWidget,
} from "../shared/parts.js";
import { createPlayer } from "../shared/player.js";
import { followerOf, readerOf } from "../shared/state.js";
import { createFold } from "../shared/tables.js";
import { tellApart } from "../shared/token_map.js";
import { createCode } from "./code.js";
import { checkedName, createHeadChoice, createNameChoice, createTokenChoice } from "./controls.js";
import { createGrid } from "./grids.js";
import { after, afterToken, before, isFirst, isLast, LINES, marksOf } from "./lines.js";
import { largestIn, memoryAt, shapesOf, VECTORS } from "./memory.js";
import { countOf, isForm, sizesOf, walk } from "./numbers.js";
import { createReading } from "./reading.js";
import { tablesOf } from "./tables.js";
import { isAtMask, sayCell, sayLine, sayMask } from "./words.js";

const TRAITS = ["name", "token", "line", "head"];
const PAUSE = 1000; // milliseconds for a line, when lines follow by themselves
const LONGEST = 16; // tokens of a name, as in Python
const CUT = ["q", "k", "v", "joined", "keys", "values"]; // lists that are cut into a part for each head
const IN_PARTS = ["own", "q_h", "k_h", "v_h", "scores", "weights", "mix"]; // lines that read a part

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const spec = read.read("spec", isForm, "that of a GPT of one block");
  const sizes = sizesOf(spec);
  const vocabulary = [...read.text("vocabulary")];
  if (vocabulary.length !== sizes.V) {
    throw new Error(`vocabulary should have ${sizes.V} letters, but has ${vocabulary.length}`);
  }
  const boundary = read.read("boundary", (one) => vocabulary.includes(one), "of the vocabulary");
  const form = { vocabulary, boundary, most: Math.min(sizes.length, LONGEST) - 1 };
  const isName = (text) => {
    try {
      return typeof text === "string" && checkedName(text, form) === text;
    } catch {
      return false;
    }
  };
  const name = read.read("name", isName, `1 to ${form.most} of the model's letters`);
  const isToken = (token) => Number.isInteger(token) && token >= 0 && token <= form.most;
  const token = read.read("token", isToken, `one of 0 to ${form.most}`);
  const ids = [boundary, ...name, boundary].map((letter) => vocabulary.indexOf(letter));
  const T = ids.length - 1;
  const line = read.read("line", (one) => LINES.includes(one), "the name of a line");
  return {
    ...sizes,
    ...form,
    spec,
    name,
    ids, // with what comes after the last letter
    T,
    line,
    token: line === "cache" ? 0 : Math.min(token, T - 1),
    head: read.index("head", sizes.h),
    names: read.list("names", isName, "names in the model's letters"),
    numbers: read.numbers("weights", countOf(spec)),
    code: read.texts("code", LINES.length),
    helpers: read.text("helpers"),
    origin: read.text("origin"),
  };
}

function render({ model, el }) {
  const { names, code, helpers, origin, h, d, V, ...form } = readState(model);
  const follower = followerOf(model);
  const nameChoice = createNameChoice(names, form, (name) => move({ name }));
  const tokenChoice = createTokenChoice((token) => move({ token }));
  const headChoice = createHeadChoice(h, (head) => move({ head }));
  const lines = createCode(code, (line) => move({ line }));
  const live = createLive();
  const reading = createNote("Point at a number, or move there by arrow keys, to read it.");
  reading.classList.add("attn-reading-line");
  const memory = element("div", { class: "attn-memory", tabindex: 0, role: "application" });
  memory.setAttribute("aria-label", "The lists; arrow keys read their numbers");
  const player = createPlayer({
    pause: PAUSE,
    moves: false,
    isLast: () => isLast(readState(model), readState(model).T),
    start: () => follower.setAll({ token: 0, line: LINES[0] }),
    go,
    onPlayingChange: (isPlaying) => live.setAttribute("aria-live", isPlaying ? "off" : "polite"),
  });
  const over = createButton("Next token", () => {
    player.stop();
    const state = readState(model);
    follower.setAll(afterToken(state, state.T));
  });
  const fold = createFold(tablesOf);
  const functions = element(
    "details",
    {},
    element("summary", {}, "The functions that it calls"),
    element("pre", { class: "attn-helpers" }, helpers),
  );
  const [back, step, play] = player.nodes;
  const playing = createControls(element("div", { class: "attn-row" }, play, back, step, over));
  playing.classList.add("attn-player");
  const legend = createLegend(
    [element("span", { class: "attn-signed", "aria-hidden": "true" }), "below 0 … above 0"],
    ["attn-reads", "read by this line"],
    ["attn-makes", "made by it"],
  );
  const root = createWidget(
    "gpt-steps",
    "A GPT, line by line",
    createNote(
      `Weights: ${origin}. Press a line to go there. Colors go up to each list's largest number.`,
    ),
    createControls(nameChoice.node, tokenChoice.node, headChoice.node),
    element(
      "div",
      { class: "attn-debugger attn-wide" },
      playing,
      lines.node,
      live,
      element("div", { class: "attn-side" }, reading, memory, legend),
    ),
    functions,
    fold.node,
  );

  function move(values) {
    player.stop();
    follower.setAll(values);
  }
  function go(by) {
    const state = readState(model);
    const { token, line, head } = by > 0 ? after(state, state) : before(state, state);
    follower.setAll({ token, line, head });
  }
  root.addEventListener("keydown", (event) => {
    const by = { PageUp: -1, PageDown: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    player.stop();
    go(by);
  });

  let walked = null; // {name, tokens}: the loop over the whole name
  let grids = null; // those of a name of T tokens
  let shown = null; // the state that is drawn, with what was computed for it
  const reader = createReading(memory, (list, row, column) => {
    reading.replaceChildren(...sayCell(list, row, column, shown.at(list, row, column), shown));
  });

  /** The grids for a name: a column of the cache for each of its tokens. */
  function build({ name, T, ids, vocabulary, ...sizes }) {
    const shapes = shapesOf({ ...sizes, h, d, V }, T);
    const letters = ids.slice(0, T).map((id) => vocabulary[id]);
    const lettersOf = { keys: letters, values: letters, logits: vocabulary, chances: vocabulary };
    const made = Object.entries(shapes).map(([list, shape]) => {
      const heads = CUT.includes(list) || list === "scores" || list === "weights" ? h : 0;
      return [list, createGrid(list, shape, { heads, letters: lettersOf[list] })];
    });
    grids = { name, shapes, all: Object.fromEntries(made) };
    const row = (className, ...lists) =>
      element("div", { class: className }, ...lists.map((list) => grids.all[list].node));
    memory.style.setProperty("--tokens", T);
    memory.style.setProperty("--vocabulary", V);
    memory.replaceChildren(
      row("attn-lists", ...VECTORS),
      row("attn-cache", "keys", "values", "scores", "weights"),
      row("attn-next", "logits", "chances"),
    );
    reader.show(Object.values(grids.all));
  }

  function draw() {
    const state = readState(model);
    const { name, T, ids, token, line, head, vocabulary } = state;
    if (walked?.name !== name) {
      const tokens = walk(state.spec, state.numbers, ids.slice(0, T));
      walked = { name, tokens, largest: largestIn(tokens) };
    }
    if (grids?.name !== name) build(state);
    const letters = ids.slice(0, T).map((id) => vocabulary[id]);
    const nameOf = tellApart(letters);
    const letterOf = (id) => vocabulary[id];
    const at = memoryAt(walked.tokens, state, state);
    const { reads, makes } = marksOf(state, state);
    const appears = shown !== null; // what a page opens with stands there at once
    shown = { ...state, walked: walked.tokens, shapes: grids.shapes, at, nameOf, letterOf };
    const coming = line === "chances" ? ids[token + 1] : null;
    for (const [list, grid] of Object.entries(grids.all)) {
      const ofList = (marks) => marks.filter((mark) => mark.list === list);
      const isCut = IN_PARTS.includes(line) && CUT.includes(list) && list !== "joined";
      grid.draw((row, column) => at(list, row, column), {
        head,
        lit: { keys: token, values: token, chances: coming }[list],
        largest: walked.largest[list],
        isQuiet: (row) => isCut && Math.floor(row / state.width) !== head,
        reads: ofList(reads),
        makes: ofList(makes),
        appears,
      });
    }
    live.replaceChildren(...sayLine(shown), ...(isAtMask(state) ? sayMask(state) : []));
    lines.draw(line, isAtMask(state));
    nameChoice.draw(name);
    tokenChoice.draw(letters, nameOf, token);
    headChoice.draw(head);
    player.draw(isFirst(state));
    over.setAttribute("aria-disabled", String(isLast(state, T)));
    reader.refresh();
    fold.draw(shown, { label: "The lists as tables" });
  }

  draw();
  el.replaceChildren(root);
  const forget = follower.on(TRAITS, draw);
  return () => {
    player.end();
    forget();
  };
}

export default { render };
