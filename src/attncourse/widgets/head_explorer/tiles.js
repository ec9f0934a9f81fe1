// HeadExplorer's overview: a small map a head.

import { divisors } from "../shared/attention.js";
import { useHeadColor } from "../shared/color.js";
import { element, write, writeAttribute } from "../shared/dom.js";
import { tileNumber } from "../shared/numbers.js";
import { createToolbar } from "../shared/toolbar.js";
import { createWeightsPicture } from "../shared/weights_picture.js";

const MOST_MARKED = 96; // cells side by side in all tiles; the dots of more would touch

function createTile(head, choose) {
  const name = element("span");
  const number = element("span", { class: "attn-number" });
  const picture = createWeightsPicture();
  const title = element("span", { class: "attn-tile-title" }, name, number);
  const button = element("button", { type: "button", class: "attn-tile" }, title, picture.node);
  useHeadColor(button, head);
  button.addEventListener("click", () => choose(head));
  return { button, name, number, picture };
}

/** A small map a head, with the mean of its rows' largest weights; one is in the tab order, arrow keys move. */
export function createTiles({ choose }) {
  const toolbar = createToolbar("", "attn-grid attn-scroll");
  const tiles = [];

  function draw({ maps, names, means, departs }, { T, ...options }) {
    const all = ["All heads", departs].filter(Boolean).join(", ");
    writeAttribute(toolbar.node, "aria-label", `${all}; arrow keys move, Enter enlarges`);
    const count = maps.length;
    // Full lines beside the large map, nearly a square; elsewhere lines, which take much the same room
    // for few and many.
    const columns = Math.min(
      8,
      divisors(count).find((divisor) => divisor ** 2 >= count),
    );
    toolbar.node.style.setProperty("--columns", count <= 8 ? 2 : 4);
    toolbar.node.style.setProperty("--columns-beside", columns);
    toolbar.node.style.setProperty("--lines-beside", Math.ceil(count / columns));
    toolbar.node.style.setProperty("--columns-alone", Math.min(8, count));
    // Where both don't fit one line the number has its own in every tile, so that no tile moves.
    toolbar.node.classList.toggle("attn-stacked", names.length > 0 || columns > 4);
    while (tiles.length < count) tiles.push(createTile(tiles.length, choose));
    toolbar.show(tiles.slice(0, count).map(({ button }) => button));
    const isMarked = columns * T <= MOST_MARKED;
    maps.forEach((weights, head) => {
      const { button, name, number, picture } = tiles[head];
      write(name, names[head] ?? (columns > 3 ? `${head + 1}` : `head ${head + 1}`));
      write(number, tileNumber(means[head]));
      const spoken = names[head] ? `head ${head + 1}, ${names[head]}` : `head ${head + 1}`;
      button.setAttribute("aria-label", spoken);
      picture.draw(weights, T, { ...options, isMarked });
    });
    return isMarked;
  }
  return { node: toolbar.node, draw, mark: toolbar.press };
}
