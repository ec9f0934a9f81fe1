// HeadAtlas's large maps: one head, or two side by side, read cell by cell.

import { element, write } from "../shared/dom.js";
import { createHeading, createSwatch } from "../shared/parts.js";
import { createReadingMap } from "../shared/reading_map.js";
import { asTitle } from "./words.js";

const MOST_LABELED = 24; // cells a side; of more, every eighth has the number of its first token

/** What stands beside the rows and columns of a map. */
function labelsOf({ cells, perCell }, names) {
  const label = (cell) => {
    if (cells <= MOST_LABELED) return names.texts[cell * perCell];
    return cell % 8 === 0 ? String(cell * perCell) : "";
  };
  return Array.from({ length: cells }, (_, cell) => label(cell));
}

/** A head's large map below its name; `read(cell)` is told where a reader points. */
export function createHeadView(state, names, { read, drawMap }) {
  const heading = createHeading();
  const canvas = element("canvas", { "aria-hidden": "true" });
  const picture = element("span", { class: "attn-picture" }, canvas);
  const labels = labelsOf(state, names);
  const map = createReadingMap(picture, labels, labels, read);
  map.node.classList.toggle("attn-many-cells", state.cells > MOST_LABELED);
  const node = element("div", {}, heading, map.node);

  function draw(head) {
    const layer = element("code", {}, state.layerNames[Math.floor(head / state.h)]);
    const name = element("strong", {}, asTitle(names.head(head)));
    heading.replaceChildren(createSwatch(head % state.h), name, " of ", layer);
    map.plot.setAttribute("aria-label", `Map of ${names.head(head)}; arrow keys read it`);
    drawMap(canvas, head);
  }
  return { node, draw };
}

/** The colors of a map, in words: `of` what they are, and whether they go by the square root. */
export function drawLegend(legend, { of, lifted }) {
  const [scale, barred] = legend.children;
  scale.firstChild.data = `${of} 0`;
  scale.lastChild.data = lifted ? "1 (its middle is 0.25)" : "1";
  write(barred.lastChild, "blank: may not look");
}
