// HeadAtlas's overview: a small map per head, drawn when it comes in sight.

import { useHeadColor } from "../shared/color.js";
import { element, write } from "../shared/dom.js";
import { afterPaint } from "../shared/idle.js";
import { createToolbar } from "../shared/toolbar.js";

const AT_ONCE = 10; // milliseconds of drawing, then the browser has its turn

/** How many tiles stand side by side: so that lines and layers end together, where that goes. */
function columnsOf(heads, most) {
  const fitting = Array.from({ length: most }, (_, i) => most - i).find((n) => heads % n === 0);
  return 2 * fitting > most ? fitting : Math.min(heads, most);
}

function createTile(head, name, cells, choose) {
  const number = element("span", { class: "attn-number" });
  const best = element("bdi", { class: "attn-tile-key", dir: "auto" });
  const canvas = element("canvas", { "aria-hidden": "true", width: cells, height: cells });
  const picture = element("span", { class: "attn-picture" }, canvas);
  const title = element("span", { class: "attn-tile-title" }, element("span", {}, name), number);
  const parts = [title, picture, best];
  const button = element("button", { type: "button", class: "attn-tile" }, ...parts);
  button.addEventListener("click", () => choose(head));
  return { head, button, number, best, canvas, isSeen: false, shown: null };
}

/**
 * A small map for each head, its score above and the key of its chosen row below; `drawMap(canvas,
 * head)` draws one.
 */
export function createTiles({ heads, h, cells }, names, { choose, drawMap }) {
  const toolbar = createToolbar("All heads; arrow keys move, Enter enlarges", "attn-heads");
  const tiles = Array.from({ length: heads }, (_, head) =>
    createTile(head, names.short(head), cells, choose),
  );
  const tileOf = new Map(tiles.map((tile) => [tile.button, tile]));
  let shown = []; // heads
  let look = null; // what the maps depend on besides the head
  let stop = () => {}; // what is yet to be drawn

  function paintOne(tile) {
    if (tile.shown === look) return;
    tile.shown = look;
    drawMap(tile.canvas, tile.head);
  }
  /** Draw what is in sight and isn't as it should be, so many at a time that a page stays quick. */
  function paint() {
    stop();
    const end = performance.now() + AT_ONCE;
    for (const tile of tiles.filter(({ isSeen }) => isSeen)) {
      if (performance.now() > end) {
        stop = afterPaint(paint);
        return;
      }
      paintOne(tile);
    }
  }
  const paintAll = () => tiles.forEach(paintOne);
  window.addEventListener("beforeprint", paintAll);
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) tileOf.get(target).isSeen = isIntersecting;
    paint();
  });
  for (const { head, button } of tiles) {
    useHeadColor(button, head % h);
    watch.observe(button);
  }
  const columns = columnsOf(h, 12);
  toolbar.node.classList.toggle("attn-stacked", columns > 6);
  toolbar.node.style.setProperty("--columns", columns);
  toolbar.node.style.setProperty("--columns-narrow", columnsOf(h, 5));

  /** Show these heads with their scores as texts. */
  function draw(wanted, { scoreOf, scoreName }) {
    const buttons = wanted.map((head) => tiles[head].button);
    if (String(wanted) !== String(shown)) toolbar.node.replaceChildren(...buttons);
    toolbar.show(buttons);
    shown = wanted;
    for (const head of wanted) {
      write(tiles[head].number, scoreOf(head));
      const spoken = `${names.head(head)}, ${scoreName} ${scoreOf(head)}`;
      tiles[head].button.setAttribute("aria-label", spoken);
    }
  }
  /** Draw the maps anew where they are in sight, and the others when they come there. */
  function redraw(options) {
    look = options;
    paint();
  }
  /** Write what a head looks at most below its map. */
  function label(textOf) {
    tiles.forEach(({ best }, head) => write(best, textOf(head)));
  }
  const mark = (head) => toolbar.press(shown.indexOf(head));
  function end() {
    watch.disconnect();
    window.removeEventListener("beforeprint", paintAll);
    stop();
  }
  return { node: toolbar.node, draw, redraw, label, mark, end };
}
