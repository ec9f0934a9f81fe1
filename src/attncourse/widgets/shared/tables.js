// The numbers of a drawing, as tables in a fold.

import { element, write } from "./dom.js";

/**
 * A fold with tables that are made only while it is open: `makeTables(shown)` of what was last
 * given to `draw(shown, {summary, label})`; `makeNotes()` are paragraphs above them.
 */
export function createFold(makeTables, makeNotes = () => []) {
  const summary = element("summary");
  const notes = element("div");
  const scroll = element("div", { class: "attn-scroll attn-table", tabindex: 0, role: "group" });
  const node = element("details", {}, summary, notes, scroll);
  let current = null;
  function fill() {
    if (!node.open) return;
    notes.replaceChildren(...makeNotes());
    scroll.replaceChildren(...makeTables(current));
  }
  node.addEventListener("toggle", fill);

  function draw(shown, { summary: text = "The numbers", label }) {
    current = shown;
    write(summary, text);
    scroll.setAttribute("aria-label", label);
    fill();
  }
  return { node, draw };
}

/** A table; `columns` and each row [name, ...cells] are texts. */
export function createTable(caption, columns, rows) {
  const header = (scope, text) => (text ? element("th", { scope }, text) : element("td"));
  const head = element("tr", {}, ...columns.map((text) => header("col", text)));
  const body = rows.map(([name, ...cells]) =>
    element("tr", {}, header("row", name), ...cells.map((text) => element("td", {}, text))),
  );
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, head),
    element("tbody", {}, ...body),
  );
}
