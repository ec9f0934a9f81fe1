// MaskPainter's view of one row: its weights before and after the last change.

import { element } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createHeading, createLegend, createNote } from "../shared/parts.js";
import { tellApart } from "../shared/token_map.js";

/** The rows in which two masks differ. */
export function changedRows(before, after, T) {
  const rows = Array.from({ length: T }, (_, i) => i);
  return rows.filter((i) => rows.some((j) => before[i * T + j] !== after[i * T + j]));
}

/** By what factor the weights that are left in a row have grown, or null where none is left. */
export function commonFactor(before, after) {
  const stayed = before.map((weight, j) => (after[j] > 0 ? weight : 0));
  const largest = stayed.indexOf(Math.max(...stayed));
  return stayed[largest] > 0 ? after[largest] / before[largest] : null;
}

function changeInWords(before, after, changed) {
  const others =
    changed > 1 ? ` It is one of ${changed} rows that changed.` : " No other row changed.";
  const factor = commonFactor(before, after);
  if (!before.some((weight) => weight > 0)) return `It looked nowhere before.${others}`;
  if (factor === null) return `None of its weights is left.${others}`;
  if (shortNumber(factor) === "1.00") return `The other weights changed by less than 1%.${others}`;
  const verb = factor > 1 ? "grew" : "shrank";
  return `All weights that are left ${verb} by the same factor, ${shortNumber(factor)}.${others}`;
}

/** The weights of one row as bars, and beside them what they were. */
export function createRowChange(tokens) {
  const T = tokens.length;
  const named = tellApart(tokens);
  const heading = createHeading();
  const note = createNote();
  const legend = createLegend(["attn-was", "before"], ["attn-is", "now"]);
  const bars = tokens.map((token) => {
    const [was, is] = ["attn-was", "attn-is"].map((name) => element("span", { class: name }));
    const number = element("span", { class: "attn-number" });
    const name = element("span", { class: "attn-name", dir: "auto", title: token }, token);
    const track = element("span", { class: "attn-bars", "aria-hidden": "true" }, was, is);
    return { node: element("div", { class: "attn-change" }, name, track, number), was, is, number };
  });
  const node = element("div", {}, heading, ...bars.map((bar) => bar.node), legend, note);

  /** Show a row of weights; `before` are all weights before the change, or null. */
  function draw(row, weights, before, changed) {
    const part = (all) => Array.from(all.subarray(row * T, (row + 1) * T));
    const now = part(weights);
    const then = before && part(before);
    heading.replaceChildren(
      "Row of ",
      element("bdi", { class: "attn-query" }, named(row)),
      then ? ", before and now" : "",
    );
    bars.forEach(({ was, is, number }, j) => {
      was.style.width = `${100 * (then ?? now)[j]}%`;
      is.style.width = `${100 * now[j]}%`;
      const text = shortNumber(now[j]);
      number.textContent = then ? `${shortNumber(then[j])} \u2192 ${text}` : text;
    });
    legend.hidden = then === null;
    note.textContent = then
      ? changeInWords(then, now, changed)
      : "Change a look, and its row appears here, before and after.";
  }
  return { node, draw };
}
