// HeadLab's heads: a small map each, to choose it and to mute it, and one of them enlarged.

import { useHeadColor } from "../shared/color.js";
import { element, svgElement, write, writeAttribute } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createCheckbox, createSwatch } from "../shared/parts.js";
import { createReadingMap } from "../shared/reading_map.js";
import { createToolbar } from "../shared/toolbar.js";
import { createWeightsPicture } from "../shared/weights_picture.js";
import { nameOf, pairsOf } from "./findings.js";

/**
 * Weights as a picture, with frames around the true partners; rows that ask for nothing are faint, and
 * forbidden looks blank.
 */
export function createPicture() {
  const picture = createWeightsPicture();
  const faint = svgElement("path", { class: "attn-faint" });
  const barred = svgElement("path", { class: "attn-barred-look" });
  const frames = ["attn-halo", "attn-frame"].map((name) => svgElement("path", { class: name }));
  const attributes = {
    class: "attn-dots attn-truth",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  };
  const svg = svgElement("svg", attributes, faint, barred, ...frames);
  picture.node.append(svg);

  /**
   * `rows` x T weights, or null; `pairs` are [row, column] with a frame, `forbidden` those without a
   * color, others than `asking` are faint.
   */
  function draw(weights, { T, rows = T, asking, pairs, forbidden = [] }) {
    const options = { rows, mayLook: () => T, top: 1, isMarked: false };
    picture.draw(weights ?? new Float32Array(rows * T), T, options);
    picture.node.style.setProperty("--shape", T / rows);
    picture.node.classList.toggle("attn-blank", weights === null);
    writeAttribute(svg, "viewBox", `0 0 ${T} ${rows}`);
    const others = Array.from({ length: rows }, (_, row) => row).filter((row) => !asking.has(row));
    writeAttribute(faint, "d", others.map((row) => `M0 ${row}h${T}v1h${-T}z`).join(""));
    const cells = (some) => some.map(([row, column]) => `M${column} ${row}h1v1h-1z`).join("");
    writeAttribute(barred, "d", cells(forbidden));
    for (const frame of frames) writeAttribute(frame, "d", cells(pairs));
  }
  return { node: picture.node, draw };
}

/**
 * What the maps of a sentence have in common: which rows are drawn, from `first` on, which
 * of them ask, and for which word. Where one row alone asks, it is drawn alone. `forbiddenIn` says
 * where a head may not look.
 */
export function truthOf(sentence, relations, forbidden = null) {
  const T = sentence.words.length;
  const all = relations.flatMap(({ name }) => pairsOf(sentence, name));
  const asking = [...new Set(all.map(([row]) => row))];
  const [first, rows] = asking.length === 1 ? [asking[0], 1] : [0, T];
  const drawn = (some) => some.map(([row, column]) => [row - first, column]);
  const pairs = drawn(all);
  const barred = drawn(forbidden ? pairsOf(sentence, forbidden.relation) : []);
  const forbiddenIn = (head) => ([null, head].includes(forbidden?.head) ? barred : []);
  return { T, first, rows, pairs, asking: new Set(pairs.map(([row]) => row)), forbiddenIn };
}

/** The rows of a sentence's maps that are drawn, for each head, of its weights [h, T, T]. */
export function mapsOf(weights, { T, first, rows }) {
  return Array.from({ length: weights.length / T ** 2 }, (_, head) => {
    const from = (head * T + first) * T;
    return weights.subarray(from, from + rows * T);
  });
}

function createTile(head, choose) {
  const picture = createPicture();
  const name = element("span", { class: "attn-tile-name" }, `${head + 1}`);
  const best = element("span", { class: "attn-tile-best" });
  const title = element("span", { class: "attn-tile-title" }, name, best);
  const button = element("button", { type: "button", class: "attn-tile" }, title, picture.node);
  useHeadColor(button, head);
  button.addEventListener("click", () => choose(head));
  return { button, picture, best };
}

/** A small map a head; pressed, it is enlarged. */
export function createTiles({ choose, name = "All heads" }) {
  const toolbar = createToolbar(`${name}; arrow keys move, Enter enlarges`, "attn-grid");
  const tiles = [];

  /** `maps` has each head's weights, or null; `specialties` what each is best at, or null. */
  function draw({ count, maps, truth, chosen, muted, specialties }) {
    while (tiles.length < count) tiles.push(createTile(tiles.length, choose));
    const shown = tiles.slice(0, count);
    toolbar.show(shown.map(({ button }) => button));
    shown.forEach(({ button, picture, best }, head) => {
      picture.draw(maps?.[head] ?? null, { ...truth, forbidden: truth.forbiddenIn(head) });
      const isMuted = muted.includes(head);
      const own = specialties?.[head];
      button.classList.toggle("attn-muted", isMuted);
      write(best, own ? `${nameOf(own.relation)} ${shortNumber(own.mass)}` : "");
      const spoken = [
        `head ${head + 1}`,
        isMuted ? "muted" : "",
        own ? `best at ${best.textContent}` : "",
      ];
      writeAttribute(button, "aria-label", spoken.filter(Boolean).join(", "));
    });
    toolbar.press(chosen);
  }
  return { node: toolbar.node, draw };
}

/** A checkbox a head; an unticked head is muted. */
export function createSwitches({ mute }) {
  const node = element("div", { class: "attn-row attn-switches", role: "group" });
  node.setAttribute("aria-label", "Heads that work; untick one to mute it");
  const switches = [];

  function draw(count, muted) {
    while (switches.length < count) {
      const head = switches.length;
      const name = [createSwatch(head), element("span", {}, `${head + 1}`)];
      const checkbox = createCheckbox(name, (checked) => mute(head, !checked));
      checkbox.node.firstChild.setAttribute("aria-label", `head ${head + 1} works`);
      switches.push(checkbox);
      node.append(checkbox.node);
    }
    switches.forEach(({ node: label, draw: tick }, head) => {
      label.hidden = head >= count;
      tick(!muted.includes(head));
    });
  }
  return { node, draw };
}

/** The enlarged map of sentences of one form; `read(cell)` is told where a reader points, as drawn. */
export function createLargeMap(words, { first, rows }, { read }) {
  const picture = createPicture();
  const asking = (words) => words.slice(first, first + rows);
  const map = createReadingMap(picture.node, words, asking(words), read);
  const { node, plot, cursor } = map;

  function draw(words, weights, truth, head) {
    map.name(words, asking(words));
    picture.draw(weights, { ...truth, forbidden: truth.forbiddenIn(head) });
    plot.setAttribute("aria-label", `Weights of head ${head + 1}; arrow keys read them`);
  }
  return { node, draw, cursor };
}
