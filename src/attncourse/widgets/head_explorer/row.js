// HeadExplorer's view of one token: its row of weights in all heads, below the sentence.

import { createArcs, MOST_ARCS } from "../shared/arcs.js";
import { useHeadColor } from "../shared/color.js";
import { element, showChildren, write } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createNote, createSwatch } from "../shared/parts.js";
import { createToolbar } from "../shared/toolbar.js";
import { createWeightsPicture, favorites } from "../shared/weights_picture.js";

const MOST_NAMED = 16; // heads; the lines of more are too thin for a name and a number each
// Letters side by side, each word having as much room as the longest: a line of weights has names and
// numbers beside it, and the sentence has not.
const MOST_FLAT = { sentence: 92, lines: 64 };

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
  const [names, numbers] = ["attn-names", "attn-numbers"].map((name) =>
    element("div", { class: name, "aria-hidden": "true" }),
  );
  const labels = []; // of each head that was ever shown: its name and number
  const columns = element("div", { class: "attn-line-words", "aria-hidden": "true" });
  columns.append(...tokens.map((token) => element("span", { dir: "auto" }, token)));
  const sentence = element("div", { class: "attn-sentence" }, arcs.node, toolbar.node);
  const lines = element("div", { class: "attn-lines" }, names, columns, picture.node, numbers);
  const longest = Math.max(...tokens.map((token) => token.length));
  for (const [name, part] of Object.entries({ sentence, lines })) {
    part.style.setProperty("--tokens", T);
    part.classList.toggle("attn-upright", T * longest > MOST_FLAT[name]);
  }
  const note = createNote();
  note.classList.add("attn-numbers-note");
  const scrolled = (part, more) => element("div", { class: "attn-scroll", ...more }, part);
  const chooser = element(
    "div",
    { class: "attn-token" },
    createNote("Choose a token, and see where it looks."),
    scrolled(sentence),
  );
  const heading = createNote("Its row in all heads:");
  const reachable = { tabindex: "0", role: "group", "aria-label": "A row in all heads" };
  const node = element("div", { class: "attn-token" }, heading, scrolled(lines, reachable), note);

  function createLabel(head) {
    const long = element("span", { class: "attn-long" });
    const short = element("span", { class: "attn-short" }, `${head + 1}`);
    const name = element("span", {}, createSwatch(head), long, short);
    useHeadColor(name, head);
    return { name, long, number: element("span") };
  }

  /** Name the first `count` heads, and write a number beside each line. */
  function label(count, nameOf, numberOf) {
    while (labels.length < count) labels.push(createLabel(labels.length));
    const shown = labels.slice(0, count);
    shown.forEach(({ long, number }, head) => {
      write(long, nameOf(head));
      write(number, numberOf(head));
    });
    const nodes = (part) => shown.map((parts) => parts[part]);
    showChildren(names, nodes("name"));
    showChildren(numbers, nodes("number"));
  }

  /** Draw where the chosen word looks, in all of a few heads, or in the enlarged one. */
  function drawArcs(token, { maps, head: enlarged }) {
    const heads = maps.length <= MOST_ARCS ? [...maps.keys()] : [enlarged];
    const rowOf = (head) => maps[head].subarray(token * T, (token + 1) * T);
    const rows = heads.map((head) => ({ head, name: head + 1, row: rowOf(head) }));
    arcs.drawRows(tokens, token, rows);
  }

  function draw(token, now, { causal, top }) {
    const { maps, names: given } = now;
    const count = maps.length;
    const rows = new Float64Array(count * T);
    maps.forEach((weights, head) => {
      rows.set(weights.subarray(token * T, (token + 1) * T), head * T);
    });
    const options = { rows: count, mayLook: () => (causal ? token + 1 : T), top };
    const isNamed = count <= MOST_NAMED;
    lines.style.setProperty("--heads", count);
    picture.draw(rows, T, { ...options, isMarked: isNamed && T <= 4 * MOST_NAMED });
    toolbar.press(token);
    drawArcs(token, now);
    const found = new Map(favorites(rows, T, options).map((best) => [best.row, best]));
    const weightOf = (head) => (found.has(head) ? shortNumber(found.get(head).weight) : "alike");
    const nameOf = (head) => given[head] ?? `head ${head + 1}`;
    label(isNamed ? count : 0, nameOf, weightOf);
    write(
      note,
      isNamed
        ? "On the right, each head's largest weight in this row."
        : `Head 1 is the top line, head ${count} the bottom one; names and numbers up to ${MOST_NAMED} heads.`,
    );
    return [...found.values()];
  }
  return { chooser, node, draw, drawArcs };
}
