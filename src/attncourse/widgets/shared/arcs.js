// A sentence with arcs between its words: from one that looks to those that it looks at.

import { largestOf } from "./attention.js";
import { useHeadColor } from "./color.js";
import { element, showChildren, svgElement, writeAttribute } from "./dom.js";
import { shortNumber } from "./numbers.js";

const THICKEST = 9; // pixels, of a weight of 1
const LONGEST = 46; // letters that fit in a line; more run downward
const LEAST = 0.01; // weights below have no arc of their own
const LOOP = { width: 26, height: 44 }; // of a word's look at itself

/** Of so many heads at most all have arcs; of more the enlarged one alone. */
export const MOST_ARCS = 4;

/**
 * Words with arcs above them. On a phone, and where there are too many, they run downward, with arcs
 * at their left. A thicker arc is a larger weight, in the color of its head. A widget that shows the
 * words itself gives its `ownLine`, above which it puts the arcs.
 */
export function createArcs(ownLine = null) {
  const drawing = svgElement("svg", { class: "attn-arcs-drawing", role: "img" });
  const line = ownLine ?? element("div", { class: "attn-arcs-words" });
  const node = ownLine ? drawing : element("div", { class: "attn-arcs" }, drawing, line);
  let looks = [];
  let layout = null; // where the words stand along the line, and the room for arcs

  function measure() {
    const isDown = getComputedStyle(line).flexDirection === "column";
    const { left, top, width, height } = drawing.getBoundingClientRect();
    const middles = Array.from(line.children, (word) => {
      const box = word.getBoundingClientRect();
      return isDown ? box.top + box.height / 2 - top : box.left + box.width / 2 - left;
    });
    layout = { isDown, middles, room: isDown ? width : height };
    drawAll();
  }

  function pathOf({ from, to, head }, heads, furthest) {
    const { isDown, middles, room } = layout;
    const nearest = Math.min(...middles.slice(1).map((middle, i) => Math.abs(middle - middles[i])));
    const apart = Math.min(isDown ? 3 : THICKEST, (0.7 * nearest) / heads.length); // stay by its word
    const aside = (heads.indexOf(head) - (heads.length - 1) / 2) * apart;
    const isLoop = from === to;
    const [start, end] = [middles[from] + aside, middles[to] + aside];
    const far = Math.sqrt(Math.abs(end - start) / furthest);
    const out = isLoop ? LOOP.height : ((room - THICKEST) * far * 4) / 3; // of a curve's two handles
    const wide = isLoop ? LOOP.width : 0;
    const at = (along, away) => (isDown ? `${room - away} ${along}` : `${along} ${room - away}`);
    const handles = `${at(start - wide, out)} ${at(end + wide, out)}`;
    return `M${at(start, 0)}C${handles} ${at(end, 0)}`;
  }

  function drawAll() {
    if (layout === null) return;
    const { middles } = layout;
    const distances = looks.map(({ from, to }) => Math.abs(middles[from] - middles[to]));
    const furthest = Math.max(1, ...distances);
    const heads = [...new Set(looks.map(({ head }) => head))].sort((a, b) => a - b);
    const paths = [...drawing.children];
    while (paths.length < looks.length) paths.push(svgElement("path"));
    showChildren(drawing, paths.slice(0, looks.length));
    looks.forEach((look, i) => {
      useHeadColor(paths[i], look.head);
      paths[i].style.setProperty("--weight", look.weight);
      writeAttribute(paths[i], "class", look.isBefore ? "attn-arc attn-arc-before" : "attn-arc");
      writeAttribute(paths[i], "d", pathOf(look, heads, furthest));
    });
  }

  /** Show a sentence: a node for each of its words; an own line has them already. */
  function show(words) {
    if (!ownLine) {
      const letters = words.reduce((sum, word) => sum + word.textContent.length, 0);
      node.classList.toggle("attn-long", letters > LONGEST);
      line.replaceChildren(...words);
    }
    layout = null; // measured as soon as they stand there
    observer.disconnect();
    for (const box of [node, ...words]) observer.observe(box);
  }

  /**
   * Draw looks: {from, to, head, weight}, words and heads by their places, in a fixed order. Those of
   * a model that came before, `isBefore`, are pale. `spoken` says what is to be seen.
   */
  function draw(drawn, spoken) {
    looks = drawn;
    writeAttribute(drawing, "aria-label", spoken);
    drawAll();
  }

  /**
   * Draw where the word at `from` looks: `rows` are {head, name, row}, a head with its weights from
   * there; `before` are looks that stand below them.
   */
  function drawRows(words, from, rows, before = []) {
    const names = rows.map(({ name, row }) => {
      const most = largestOf(row);
      return `head ${name} most at ${words[row.indexOf(most)]}, ${shortNumber(most)}`;
    });
    const own = rows.flatMap(({ head, row }) =>
      Array.from(row, (weight, to) => ({ from, to, head, weight })),
    );
    const seen = own.filter(({ weight }) => weight >= LEAST);
    draw([...before, ...seen], `Arcs from ${words[from]}: ${names.join("; ") || "none yet"}`);
  }
  const observer = new ResizeObserver(measure);
  return { node, show, draw, drawRows };
}
