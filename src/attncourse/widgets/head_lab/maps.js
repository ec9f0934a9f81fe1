// HeadLab's heads: a small map each, to choose it and to mute it, and one of them enlarged.

import { nameOfHead, namesOfHeads } from "../lab/words.js";
import { useHeadColor } from "../shared/color.js";
import { element, svgElement, write, writeAttribute } from "../shared/dom.js";
import { tileNumber } from "../shared/numbers.js";
import { createCheckbox, createSwatch } from "../shared/parts.js";
import { createReadingMap } from "../shared/reading_map.js";
import { createToolbar } from "../shared/toolbar.js";
import { createWeightsPicture } from "../shared/weights_picture.js";
import { nameOf, pairsOf } from "./findings.js";

/** Weights as a picture, with frames around the true partners. */
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
  const isForbidden = (head) => head >= forbidden?.from && [null, head].includes(forbidden.head);
  const forbiddenIn = (head) => (isForbidden(head) ? barred : []);
  return { T, first, rows, pairs, asking: new Set(pairs.map(([row]) => row)), forbiddenIn };
}

/** The rows of a sentence's maps that are drawn, for each head, of its weights [heads, T, T]. */
export function mapsOf(weights, { T, first, rows }) {
  return Array.from({ length: weights.length / T ** 2 }, (_, head) => {
    const from = (head * T + first) * T;
    return weights.subarray(from, from + rows * T);
  });
}

function createTile(head, choose) {
  const picture = createPicture();
  const name = element("span", { class: "attn-tile-name" });
  const best = element("span", { class: "attn-tile-best" });
  const title = element("span", { class: "attn-tile-title" }, name, best);
  const button = element("button", { type: "button", class: "attn-tile" }, title, picture.node);
  button.addEventListener("click", () => choose(head));
  return { button, picture, name, best };
}

/** A small map a head; pressed, it is enlarged. */
export function createTiles({ choose, name = "All heads" }) {
  const toolbar = createToolbar(`${name}; arrow keys move, Enter enlarges`, "attn-grid");
  const tiles = [];

  /**
   * The heads of a model, `of`; `maps` has each head's weights, or null; `specialties` what each is best
   * at, or null.
   */
  function draw({ of, maps, truth, chosen, muted, specialties }) {
    const names = namesOfHeads(of);
    const isBrief = of.setting.task.relations.length === 1; // and it needs no name
    while (tiles.length < names.length) tiles.push(createTile(tiles.length, choose));
    const shown = tiles.slice(0, names.length);
    toolbar.show(shown.map(({ button }) => button));
    shown.forEach(({ button, picture, name, best }, head) => {
      useHeadColor(button, head % of.numHeads);
      write(name, names[head]);
      picture.draw(maps?.[head] ?? null, { ...truth, forbidden: truth.forbiddenIn(head) });
      const isMuted = muted.includes(head);
      const own = specialties?.[head];
      button.classList.toggle("attn-muted", isMuted);
      const mass = own ? tileNumber(own.mass) : "";
      const partner = own ? `${nameOf(own.relation)} ${mass}` : "";
      write(best, isBrief ? mass : partner);
      best.classList.toggle("attn-brief", isBrief);
      const spoken = [
        `head ${names[head]}`,
        isMuted ? "muted" : "",
        own ? `best at ${partner}` : "",
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

  /** The heads of a model, `of`. */
  function draw(of, muted) {
    const names = namesOfHeads(of);
    while (switches.length < names.length) {
      const head = switches.length;
      const [swatch, name] = [createSwatch(head), element("span")];
      const checkbox = createCheckbox([swatch, name], (checked) => mute(head, !checked));
      switches.push({ ...checkbox, swatch, name });
    }
    const shown = switches.slice(0, names.length);
    if (node.childElementCount !== shown.length) {
      node.replaceChildren(...shown.map((one) => one.node));
    }
    node.classList.toggle("attn-layered", names.length > of.numHeads);
    shown.forEach(({ node: label, draw: tick, swatch, name }, head) => {
      useHeadColor(swatch, head % of.numHeads);
      write(name, names[head]);
      writeAttribute(label.firstChild, "aria-label", `head ${names[head]} works`);
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

  /** The weights of a `head` of a model, `of`. */
  function draw(words, weights, truth, head, of) {
    map.name(words, asking(words));
    picture.draw(weights, { ...truth, forbidden: truth.forbiddenIn(head) });
    plot.setAttribute(
      "aria-label",
      `Weights of head ${nameOfHead(head, of)}; arrow keys read them`,
    );
  }
  return { node, draw, cursor };
}
