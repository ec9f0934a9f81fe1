// HeadMute: one token's output as a sum of what the heads add, with heads to leave out.

import { useHeadColor } from "../shared/color.js";
import { element } from "../shared/dom.js";
import { inWords, withMinus } from "../shared/numbers.js";
import {
  createButton,
  createCheckbox,
  createLegend,
  createLive,
  createNote,
  createPanes,
  createSwatch,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";
import { createPlot, lengthOf, short, sumOf, termsOf } from "./bars.js";

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [h, T, d] = read.counts("h", "T", "d");
  const [tokens, labels] = [read.texts("tokens", T), read.texts("labels", h)];
  read.index("token", T);
  read.indices("muted", h, "heads");
  const hasBias = model.get("bias")?.byteLength > 0;
  const bias = hasBias ? read.numbers("bias", d) : null;
  return { h, T, d, tokens, labels, parts: read.numbers("parts", h * T * d), bias };
}

/** A length with two decimals, or with three digits where those would say too little. */
function lengthText(length) {
  return length >= 0.1 && length < 1000 ? length.toFixed(2) : short(length);
}

/** The tokens as one radio group: Tab reaches it, arrow keys choose. */
function createTokenChoice(tokens, choose) {
  const node = element("div", { class: "attn-row attn-choice", role: "radiogroup" });
  node.setAttribute("aria-label", "The token whose output is shown");
  const buttons = tokens.map((token, i) => {
    const button = element("button", { type: "button", role: "radio" }, token);
    button.addEventListener("click", () => choose(i));
    return button;
  });
  node.append(...buttons);
  node.addEventListener("keydown", (event) => {
    const last = tokens.length - 1;
    const at = buttons.indexOf(event.target);
    const [before, after] = [at === 0 ? last : at - 1, at === last ? 0 : at + 1];
    const moves = { ArrowLeft: before, ArrowUp: before, ArrowRight: after, ArrowDown: after };
    const next = { ...moves, Home: 0, End: last }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    choose(next);
    buttons[next].focus();
  });
  function draw(chosen) {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-checked", String(i === chosen));
      button.tabIndex = i === chosen ? 0 : -1;
    });
  }
  return { node, draw };
}

/** A checkbox a head: ticked heads add to the output; and a button that swaps those with the muted. */
function createHeadSwitches(labels, { mute, swap }) {
  const sizes = labels.map(() => element("span", { class: "attn-size" }));
  const switches = labels.map((label, head) => {
    const name = [createSwatch(head), element("span", {}, label), sizes[head]];
    const checkbox = createCheckbox(name, (checked) => mute(head, !checked));
    useHeadColor(checkbox.node, head);
    return checkbox;
  });
  const nodes = switches.map((checkbox) => checkbox.node);
  nodes.push(createButton("Mute the others instead", swap));
  const node = element("div", { class: "attn-controls attn-switches", role: "group" }, ...nodes);
  node.setAttribute("aria-label", "Heads that add to the output");
  function draw(terms, muted) {
    switches.forEach((checkbox, head) => {
      checkbox.draw(!muted.includes(head));
      const { values } = terms.find((term) => term.head === head);
      sizes[head].textContent = `length ${lengthText(lengthOf(values))}`;
    });
  }
  return { node, draw };
}

/** The numbers of the bars, in a fold. */
function createNumbers(labels) {
  return createFold(({ terms, muted, token }) => {
    const names = terms.map(({ head }) =>
      head === null ? "bias" : labels[head] + (muted.includes(head) ? " (muted)" : ""),
    );
    const columns = [...terms.map(({ values }) => values), sumOf(terms), sumOf(terms, muted)];
    const rows = Array.from(columns[0], (_, j) => [
      String(j + 1),
      ...columns.map((column) => withMinus(column[j].toFixed(3))),
    ]);
    const titles = ["number", ...names, "output", "what is left"];
    return [createTable(`The output of ${token} as a sum`, titles, rows)];
  });
}

/** What muting does to the output, in a sentence. */
export function sayChange(terms, muted, labels) {
  if (muted.length === 0) {
    const lengths = labels.map((_, i) => lengthOf(terms.find(({ head }) => head === i).values));
    const most = labels[lengths.indexOf(Math.max(...lengths))];
    return `No head is muted; ${most} adds most here. Untick one to take its part out of the sum.`;
  }
  const who = inWords(muted.map((head) => labels[head]));
  const full = sumOf(terms);
  const left = sumOf(terms, muted);
  const [size, change] = [lengthOf(full), lengthOf(full.map((value, j) => value - left[j]))];
  const share = size > 0 ? `, ${Math.round((100 * change) / size)}% of its length` : "";
  const heads = terms.filter(({ head }) => head !== null).length;
  const rest = terms.length > heads ? "only the bias" : "nothing";
  const nothing = muted.length === heads ? ` With all heads muted, ${rest} is left.` : "";
  return `Muting ${who} changes this token's output by ${lengthText(change)} (length)${share}.${nothing}`;
}

function render({ model, el }) {
  const state = readState(model);
  const { d, tokens, labels, bias } = state;
  const set = setterOf(model);
  function mute(head, isMuted) {
    const others = model.get("muted").filter((other) => other !== head);
    set("muted", isMuted ? [...others, head].sort((a, b) => a - b) : others);
  }
  function swap() {
    const muted = model.get("muted");
    set(
      "muted",
      labels.map((_, head) => head).filter((head) => !muted.includes(head)),
    );
  }
  const choice = createTokenChoice(tokens, (token) => set("token", token));
  const switches = createHeadSwitches(labels, { mute, swap });
  const plot = createPlot(d, labels.length + (bias === null ? 0 : 1));
  const numbers = createNumbers(labels);
  const marks = [
    ["attn-full", "output of all heads"],
    ["attn-left", "what is left"],
  ];
  if (bias !== null) marks.push(["attn-bias", "bias"]);
  const legend = createLegend(...marks);
  legend.setAttribute("aria-hidden", "true");
  const live = createLive();
  const root = createWidget(
    "head-mute",
    "What each head adds",
    createPanes(
      [
        createNote(
          `Heads: ${model.get("origin")}. Choose a token; untick heads. A head's length (the root of ` +
            "the sum of its numbers' squares) is how far the output moves if this head alone is muted.",
        ),
        choice.node,
        switches.node,
        live,
      ],
      [plot.node, legend],
    ),
    numbers.node,
  );

  function draw() {
    const [token, muted] = [model.get("token"), model.get("muted")];
    const terms = termsOf(state, token);
    const sentence = sayChange(terms, muted, labels);
    choice.draw(token);
    switches.draw(terms, muted);
    plot.draw(terms, muted);
    plot.name(
      `The ${d} numbers of the output of ${tokens[token]}, each a stack of bars. ${sentence}`,
    );
    numbers.draw({ terms, muted, token: tokens[token] }, { label: "Table of the numbers" });
    live.textContent = sentence;
  }
  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["token", "muted"], draw);
}

export default { render };
