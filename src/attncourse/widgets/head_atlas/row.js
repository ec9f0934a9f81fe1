// HeadAtlas's view of one token: the text, tinted by what the token looks at, and the row's keys.

import { createArcs } from "../shared/arcs.js";
import { createBar } from "../shared/bar.js";
import { useHeadColor } from "../shared/color.js";
import { element } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createHeading, createNote } from "../shared/parts.js";
import { createToolbar } from "../shared/toolbar.js";
import { mayLook } from "./state.js";

/** The text as buttons, a token each. */
export function createText(names, { choose }) {
  const chips = names.texts.map((text, i) => {
    const chip = element("button", { type: "button", class: "attn-chip", title: names.token(i) });
    chip.append(element("bdi", { dir: "auto", translate: "no" }, text));
    chip.addEventListener("click", () => choose(i));
    return chip;
  });
  const toolbar = createToolbar("Choose a token; arrow keys move, Enter chooses", "attn-text");
  toolbar.show(chips);
  let tinted = [];

  function draw(token, { largest }) {
    for (const key of tinted) chips[key].style.removeProperty("--share");
    tinted = largest.map(({ key }) => key);
    for (const { key, weight } of largest) chips[key].style.setProperty("--share", weight);
    toolbar.press(token);
  }
  /** Scroll the text, and not the page, to a token. */
  function reveal(token) {
    const { node } = toolbar;
    const { offsetTop, offsetHeight } = chips[token];
    const top = offsetTop - node.offsetTop - node.scrollTop;
    const isSeen = top >= 0 && top + offsetHeight <= node.clientHeight;
    if (!isSeen) node.scrollTop += top - node.clientHeight / 2;
  }
  return { node: toolbar.node, draw, reveal };
}

/**
 * A line with a bar for each of the largest weights of a head's row, in the order of the text, with
 * arcs to them from the token; and one for all others.
 */
export function createKeys(state, names) {
  const heading = createHeading();
  const list = element("ul", { class: "attn-keys" });
  const arcs = createArcs(list);
  const note = createNote();
  const drawn = element("div", { class: "attn-arcs attn-long" }, arcs.node, list);
  const node = element("div", {}, heading, drawn, note);

  function line(name, weight, className = "") {
    const bar = createBar("attn-share");
    bar.draw(weight, null);
    return element("li", { class: className }, name, ...bar.nodes);
  }
  function draw(head, token, { largest, others, rest }) {
    useHeadColor(node, head % state.h);
    heading.replaceChildren(
      element("bdi", { class: "attn-query" }, names.token(token)),
      ` in ${names.head(head)} looks at`,
    );
    const isAmong = largest.some(({ key }) => key === token) || largest.length === 0;
    const shown = isAmong ? [...largest] : [...largest, { key: token, weight: 0 }];
    shown.sort((a, b) => a.key - b.key);
    const from = shown.findIndex(({ key }) => key === token);
    const lines = shown.map(({ key, weight }, i) => {
      const kind = i === from ? "attn-query" : "attn-key";
      const name = element("bdi", { class: kind, dir: "auto" }, names.token(key));
      return i === from && !isAmong ? element("li", {}, name) : line(name, weight);
    });
    if (others > 0 && rest !== null) {
      const all = `${others} other${others === 1 ? "" : "s"}, together`;
      lines.push(line(all, rest, "attn-rest"));
    }
    list.replaceChildren(...lines);
    arcs.show(lines);
    const row = shown.map(({ weight }) => weight);
    const rows = shown.length > 0 ? [{ head: head % state.h, name: names.short(head), row }] : [];
    arcs.drawRows(
      shown.map(({ key }) => names.token(key)),
      from,
      rows,
    );
    note.textContent =
      rest === null
        ? `Shares of the row's ${state.k} largest weights, each times its length; those of the ` +
          `other ${mayLook(state, token) - state.k} keys aren't in this atlas, and are left out.`
        : "";
    note.hidden = rest !== null;
    if (largest.length === 0) list.append(element("li", {}, "nothing: it may look nowhere"));
  }
  return { node, draw };
}

/** Which keys the heads look at most from a token, in a sentence: `best` has one per head, or null. */
export function sayFavorites(best, token, names) {
  const counts = new Map();
  for (const key of best.filter((key) => key !== null)) {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, 3);
  const called = (kind, i) => element("bdi", { class: `attn-${kind}` }, names.token(i));
  const parts = most.flatMap(([key, count], i) => [
    i === 0 ? `${count} of ${best.length} heads look most at ` : `, ${count} at `,
    key === token ? "itself" : called("key", key),
  ]);
  if (parts.length === 0) parts.push("no head may look anywhere");
  return ["From ", called("query", token), ": ", ...parts, "."];
}

/** The largest weights of rows, as a table's rows. */
export function keyRows({ largest, others, rest }, names) {
  const rows = largest.map(({ key, weight }) => [names.token(key), shortNumber(weight, 3)]);
  if (others > 0 && rest !== null) rows.push([`${others} others`, shortNumber(rest, 3)]);
  return rows;
}
