// GptSteps' numbers as tables.

import { plainNumber, shortNumber } from "../shared/numbers.js";
import { createTable } from "../shared/tables.js";
import { VECTORS } from "./memory.js";
import { times } from "./numbers.js";

/** All lists that there are at a moment; what isn't there yet is left out. */
export function tablesOf({ at, shapes, nameOf, letterOf, token, d }) {
  const say = (list, row, column, write = plainNumber) => {
    const number = at(list, row, column);
    return number === undefined ? "" : write(number);
  };
  const shares = (one) => shortNumber(one, 3);
  const table = (caption, list, columnNames, rowName, write) =>
    createTable(
      caption,
      ["", ...columnNames],
      times(shapes[list][0], (row) => [
        rowName(row),
        ...columnNames.map((_, column) => say(list, row, column, write)),
      ]),
    );
  const single = VECTORS.filter((list) => shapes[list][1] === 1);
  const vectors = createTable(
    "Lists of this token",
    ["", ...single],
    times(d, (row) => [String(row), ...single.map((list) => say(list, row, 0))]),
  );
  const wide = VECTORS.filter((list) => shapes[list][1] > 1).map((list) =>
    table(
      list,
      list,
      times(shapes[list][1], (i) => `from ${i * d}`),
      String,
    ),
  );
  const soFar = times(token + 1, nameOf);
  const headName = (row) => `head ${row + 1}`;
  const next = createTable(
    "What comes next",
    ["", "logits", "chances"],
    times(shapes.logits[1], (i) => [
      letterOf(i),
      say("logits", 0, i),
      say("chances", 0, i, shares),
    ]),
  );
  return [
    vectors,
    ...wide,
    table("keys", "keys", soFar, String),
    table("values", "values", soFar, String),
    table("scores", "scores", soFar, headName),
    table("weights", "weights", soFar, headName, shares),
    next,
  ];
}
