// HeadExplorer's controls: tabs, the slider over head counts, and the reader's own words.

import { divisors } from "../shared/attention.js";
import { element } from "../shared/dom.js";
import { inWords } from "../shared/numbers.js";
import {
  createButtonGroup,
  createCheckbox,
  createControls,
  createForm,
  createNote,
  createQuietButton,
  createSlider,
} from "../shared/parts.js";
import { LONGEST_WORD, MOST_WORDS, wordsOf } from "./sources.js";

export function headsOfWidth(numHeads, d) {
  return `${numHeads} ${numHeads === 1 ? "head" : "heads"} of width ${d / numHeads}`;
}

/** A button for each source; none where there is but one. */
export function createTabs(sources, { choose }) {
  const names = sources.map(({ name }) => name);
  const tabs = createButtonGroup("Where weights come from", names, choose);
  tabs.node.hidden = sources.length === 1;
  return tabs;
}

/** Slider over the head counts of a width d, and what else changes all maps. */
export function createChoices({ chooseCount, chooseCausal, chooseScale }) {
  let [width, counts] = [null, []]; // that the slider is made for
  const slider = createSlider("Heads", {
    max: 0,
    choose: (position) => chooseCount(counts[position]),
  });
  const causal = createCheckbox("Causal: nobody looks to the right", chooseCausal);
  const scale = createCheckbox("Colors up to the largest weight", chooseScale);
  const boxes = element("div", {}, scale.node, causal.node);
  const node = createControls(slider.node, boxes);
  function draw(numHeads, d, isCausal, toLargest) {
    if (d !== width) {
      [width, counts] = [d, divisors(d)];
      slider.fit(counts.length - 1, (counts.length <= 10 ? counts : [1, d]).map(String));
    }
    slider.draw(counts.indexOf(numHeads), headsOfWidth(numHeads, d));
    causal.draw(isCausal);
    scale.draw(toLargest);
  }
  return { node, draw };
}

/** Why words can't be looked at, or nothing. */
function problemOf(words) {
  const longest = Math.max(...words.map((word) => word.length));
  if (words.length === 0) return "Type at least one word.";
  if (words.length > MOST_WORDS) {
    return `At most ${MOST_WORDS} words, but these are ${words.length}.`;
  }
  if (longest <= LONGEST_WORD) return "";
  return `A word has at most ${LONGEST_WORD} letters here, but one has ${longest}.`;
}

/** A field for the reader's own words, or why these weights allow none. */
export function createOwnWords(sources, { choose }) {
  const label = "Your own words";
  const field = element("input", { type: "text", "aria-label": label, dir: "auto" });
  field.placeholder = "the dog saw the cat";
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const back = createQuietButton("Back to the first sentence", () => {
    choose([]);
    field.focus(); // for this button is gone
  });
  const button = element("button", { type: "submit", class: "attn-button" }, "Look at them");
  const form = createForm(
    () => {
      const words = wordsOf(field.value);
      const problem = problemOf(words);
      refusal.textContent = problem;
      field.setAttribute("aria-invalid", String(problem !== ""));
      if (!problem) choose(words);
    },
    element("label", {}, label, field),
    button,
    back,
  );
  form.className = "attn-row";
  const allowed = sources.filter(({ rules }) => rules).map(({ name }) => name);
  const why = createNote(
    "These queries and keys were computed for this sentence alone; other words would need the model " +
      "that made them.",
    allowed.length > 0 ? ` You can type your own words for ${inWords(allowed)}.` : "",
  );
  const node = element("div", { class: "attn-own" }, form, refusal, why);
  function draw(source, isOwn) {
    form.hidden = !source.rules;
    refusal.hidden = !source.rules;
    why.hidden = source.rules;
    back.hidden = !isOwn;
    if (!isOwn) field.value = "";
  }
  return { node, draw };
}
