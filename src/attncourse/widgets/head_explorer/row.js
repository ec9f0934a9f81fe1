// HeadExplorer's view of one token: its row of weights in all heads, below the sentence.

import { createArcs, MOST_ARCS } from "../shared/arcs.js";
import { useHeadColor } from "../shared/color.js";
import { element, showChildren } from "../shared/dom.js";
import { createNote } from "../shared/parts.js";
import { createToolbar } from "../shared/toolbar.js";
import { createWeightsPicture, favorites } from "../shared/weights_picture.js";

const MOST_MARKED = 64; // words; the dots of more would touch
const LONG = 12; // letters; a longer word is cut, so that the others stay as they are
// Letters side by side: words that need more stand upright. A button is as wide as its word; each
// column of weights has as much room as the longest word that isn't cut.
const MOST_FLAT = { sentence: 92, lines: 64 };

function lettersOf(lengths) {
  const inSentence = lengths.reduce((sum, length) => sum + Math.min(length, LONG) + 1, 0);
  const inColumn = Math.max(...lengths.map((length) => (length > LONG ? LONG / 2 : length)));
  return { sentence: inSentence, lines: lengths.length * inColumn };
}

function createChip(token, choose) {
  const text = element("span", { dir: "auto" }, token);
  const chip = element("button", { type: "button", class: "attn-chip", title: token }, text);
  chip.addEventListener("click", choose);
  return chip;
}

/**
 * The words as buttons with arcs above them, from the chosen one; and, to stand elsewhere, a line a
 * head that shows how its weight is shared out.
 */
export function createTokenRow(tokens, { choose }) {
  const T = tokens.length;
  const toolbar = createToolbar("Whose row; arrow keys move, Enter chooses", "attn-chips");
  const chips = tokens.map((token, i) => createChip(token, () => choose(i)));
  toolbar.show(chips);
  const arcs = createArcs(toolbar.node);
  arcs.show(chips);
  const picture = createWeightsPicture();
  const names = element("div", { class: "attn-names", "aria-hidden": "true" });
  const labels = []; // of each head that was ever shown
  const columns = element("div", { class: "attn-line-words", "aria-hidden": "true" });
  columns.append(...tokens.map((token) => element("span", { dir: "auto" }, token)));
  const sentence = element("div", { class: "attn-sentence" }, arcs.node, toolbar.node);
  const lines = element("div", { class: "attn-lines" }, names, columns, picture.node);
  const letters = lettersOf(tokens.map((token) => token.length));
  for (const [name, part] of Object.entries({ sentence, lines })) {
    part.style.setProperty("--tokens", T);
    part.classList.toggle("attn-upright", letters[name] > MOST_FLAT[name]);
  }
  const scrolled = (part, more) => element("div", { class: "attn-scroll", ...more }, part);
  const chooser = element(
    "div",
    { class: "attn-token" },
    createNote("Choose a token, and see where it looks."),
    scrolled(sentence),
  );
  const heading = createNote("Its row in all heads:");
  const reachable = { tabindex: "0", role: "group", "aria-label": "A row in all heads" };
  const scroller = scrolled(lines, reachable);
  const node = element("div", { class: "attn-token" }, heading, scroller);

  /** Name the first `count` heads. */
  function label(count) {
    while (labels.length < count) {
      const name = element("span", {}, `${labels.length + 1}`);
      useHeadColor(name, labels.length);
      labels.push(name);
    }
    showChildren(names, labels.slice(0, count));
  }

  /** Mark the enlarged head's line, and scroll to it. */
  function mark(enlarged) {
    labels.forEach((name, head) => name.classList.toggle("attn-at", head === enlarged));
    const { top, height } = labels[enlarged].getBoundingClientRect();
    const seen = {
      top: columns.getBoundingClientRect().bottom,
      bottom: scroller.getBoundingClientRect().bottom,
    };
    const middle = (seen.top + seen.bottom) / 2;
    if (top < seen.top || top + height > seen.bottom) scroller.scrollTop += top - middle;
  }

  /** Draw where the chosen word looks, in all of a few heads, or in the enlarged one. */
  function drawArcs(token, { maps, head: enlarged }) {
    const heads = maps.length <= MOST_ARCS ? [...maps.keys()] : [enlarged];
    const rowOf = (head) => maps[head].subarray(token * T, (token + 1) * T);
    const rows = heads.map((head) => ({ head, name: head + 1, row: rowOf(head) }));
    arcs.drawRows(tokens, token, rows);
    mark(enlarged);
  }

  function draw(token, now, { causal, top }) {
    const { maps } = now;
    const count = maps.length;
    const rows = new Float64Array(count * T);
    maps.forEach((weights, head) => {
      rows.set(weights.subarray(token * T, (token + 1) * T), head * T);
    });
    const options = { rows: count, mayLook: () => (causal ? token + 1 : T), top };
    lines.style.setProperty("--heads", count);
    picture.draw(rows, T, { ...options, isMarked: T <= MOST_MARKED });
    toolbar.press(token);
    label(count);
    drawArcs(token, now);
    return favorites(rows, T, options);
  }
  return { chooser, node, draw, drawArcs };
}
