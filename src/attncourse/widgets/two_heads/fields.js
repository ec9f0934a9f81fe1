// A matrix of numbers to edit.

import { element } from "../shared/dom.js";
import { createNumberFields } from "../shared/number_field.js";

/**
 * A matrix to edit, with numbers from -largest to largest; `change(index, number)` is told each, and
 * `settle()` when another change would be a new one.
 */
export function createNumberMatrix(caption, rowNames, columns, { largest, change, settle }) {
  const places = rowNames.flatMap((name) =>
    Array.from({ length: columns }, (_, column) => `${name}, column ${column + 1}`),
  );
  const name = caption.textContent;
  const fields = createNumberFields(places, { name, largest, change, settle });
  const body = rowNames.map((rowName, row) => {
    const cells = fields.inputs.slice(row * columns, (row + 1) * columns);
    const header = element("th", { scope: "row" }, rowName);
    return element("tr", {}, header, ...cells.map((input) => element("td", {}, input)));
  });
  const table = element("table", {}, element("caption", {}, caption));
  table.append(element("tbody", {}, ...body));
  const node = element("div", { class: "attn-editor" });
  node.append(element("div", { class: "attn-scroll" }, table), fields.refusal);
  return { node, draw: fields.draw };
}
