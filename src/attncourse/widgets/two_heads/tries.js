// TwoHeads' rows to try, and its weights at a glance, which stay in view while a reader edits.

import { element } from "../shared/dom.js";
import { createButton, createNote, createSwatch } from "../shared/parts.js";

const MATRICES = ["W_q", "W_k", "W_v"];

/** Whether something is a row to try: [head, matrix, row, numbers], counted from 1. */
export function isTry(value, d, width, largest) {
  const isPlace = (place, size) => Number.isInteger(place) && place >= 1 && place <= size;
  if (!Array.isArray(value) || value.length !== 4) return false;
  const [head, matrix, row, numbers] = value;
  return (
    isPlace(head, 2) &&
    MATRICES.includes(matrix) &&
    isPlace(row, d) &&
    Array.isArray(numbers) &&
    numbers.length === width &&
    numbers.every((number) => Math.abs(number) <= largest)
  );
}

/** Where such a row begins among the numbers of both heads. */
export function rowOf([head, matrix, row], d, width) {
  return ((3 * (head - 1) + MATRICES.indexOf(matrix)) * d + row - 1) * width;
}

/** A button for each row to try; none where there are none. `symbol(name)` writes a matrix' name. */
export function createTries({ d, width, tries }, symbol, choose) {
  const buttons = tries.map((value) => {
    const [head, matrix, row, numbers] = value;
    const button = createButton("", () => choose(value));
    button.append(symbol(matrix), ` of head ${head}, row ${row}: [${numbers.join(", ")}]`);
    return button;
  });
  const note = createNote("Try:");
  const attributes = { class: "attn-row attn-tries", role: "group", "aria-label": "Rows to try" };
  const node = element("div", attributes, note, ...buttons);
  node.hidden = tries.length === 0;
  function draw(heads) {
    tries.forEach((value, i) => {
      const first = rowOf(value, d, width);
      const isThere = value[3].every((number, j) => heads[first + j] === Math.fround(number));
      buttons[i].setAttribute("aria-pressed", String(isThere));
    });
  }
  return { node, draw };
}

/** The weights of all heads in little; the tables below say the same. */
export function createGlance(names, colors, T, writeWeight) {
  const maps = names.map(() => Array.from({ length: T * T }, () => element("span")));
  const parts = names.map((name, i) =>
    element(
      "div",
      {},
      element("p", {}, createSwatch(colors[i]), i < 2 ? name : "One head"),
      element("div", { class: "attn-little" }, ...maps[i]),
    ),
  );
  const node = element("div", { class: "attn-glance", "aria-hidden": "true" }, ...parts);
  node.style.setProperty("--tokens", T);
  const draw = (heads) =>
    maps.forEach((cells, i) => {
      cells.forEach((cell, j) => writeWeight(cell, heads[i].weights[j]));
    });
  return { node, draw };
}
