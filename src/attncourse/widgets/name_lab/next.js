// NameLab's beginning of a name: what may come next, and where each head looks from the last letter.

import { BOUNDARY, names } from "../engine/names.js";
import { chancesOf } from "../engine/sampling.js";
import { createBar } from "../shared/bar.js";
import { element, write } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createHeading, createLegend, createNote, createWeightsLegend } from "../shared/parts.js";
import { createReadingMap } from "../shared/reading_map.js";
import { createTable } from "../shared/tables.js";
import { createWeightsPicture } from "../shared/weights_picture.js";
import { sayPlace } from "./words.js";

const SHOWN = 8; // of the letters
const AS_IS = { temperature: 1, topK: names.vocabulary.length };
const nameOf = (token) => (token === BOUNDARY ? "end" : names.vocabulary[token]);

/** A field for a beginning: `choose(text)` is told each that may be one. */
function createField(choose) {
  const field = element("input", { type: "text" });
  const attributes = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" };
  for (const [name, value] of Object.entries(attributes)) field.setAttribute(name, value);
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const label = element("label", { class: "attn-typed" }, "A name begins with", field);
  const node = element("div", {}, label, refusal);

  function refuse(message) {
    write(refusal, message.replace(/^text must/, "This must"));
    field.setAttribute("aria-invalid", String(message !== ""));
  }
  field.addEventListener("input", () => {
    const text = field.value.trim().toLowerCase();
    try {
      if (text !== "") names.read(text);
      refuse("");
      choose(text);
    } catch (error) {
      refuse(error.message);
    }
  });
  /** Show a beginning; one that is being typed stays as it is. */
  function draw(beginning) {
    if (field.value.trim().toLowerCase() === beginning || field === document.activeElement) return;
    field.value = beginning;
    refuse("");
  }
  return { node, draw };
}

/** Bars of the likeliest letters, each with a line where the model's own chance ends. */
function createBars() {
  const rows = Array.from({ length: SHOWN }, () => {
    const letter = element("span", { class: "attn-letter" });
    const bar = createBar("attn-chance");
    return { letter, bar, node: element("li", {}, letter, ...bar.nodes) };
  });
  const heading = createHeading();
  const rest = createNote();
  const list = element("ul", { class: "attn-chances" }, ...rows.map((row) => row.node));
  const legend = createLegend(["attn-baseline-key", "at temperature 1, from all letters"]);
  const node = element("div", {}, heading, list, rest, legend);

  /** `letters` are {name, chance, own}, likely ones first; lines stand where these `differ`. */
  function draw(beginning, letters, differ) {
    write(heading, `${sayPlace(beginning)} it expects`);
    rows.forEach(({ letter, bar }, i) => {
      const { name, chance, own } = letters[i];
      write(letter, name);
      bar.draw(chance, differ ? own : null);
    });
    const left = letters.slice(SHOWN).reduce((sum, { chance }) => sum + chance, 0);
    legend.hidden = !differ;
    write(rest, `${letters.length - SHOWN} others: ${shortNumber(left)} together`);
  }
  return { node, draw };
}

/** A row for each head: how much it looks from the last letter at each one before and at itself. */
function createHeads() {
  const picture = createWeightsPicture();
  const heading = createHeading();
  const place = element("div", { class: "attn-map-place" });
  const reading = createNote();
  reading.classList.add("attn-reading-line");
  const node = element("div", {}, heading, place, reading, createWeightsLegend());
  let map = null; // {key, words, rows, ...} as createReadingMap has it
  let weights = null; // [h, T]

  function read(cell) {
    if (cell === null || weights === null) {
      return write(reading, "Point at a cell, or move there by arrow keys, to read its weight.");
    }
    const { row, column } = cell;
    const weight = shortNumber(weights[row * map.words.length + column]);
    write(
      reading,
      `Head ${row + 1} looks from ${map.words.at(-1)} at ${map.words[column]} with ${weight}.`,
    );
  }
  function draw(words, count, found) {
    weights = found;
    const key = `${words} ${count}`;
    if (map?.key !== key) {
      const rows = Array.from({ length: count }, (_, head) => `head ${head + 1}`);
      map = { key, words, ...createReadingMap(picture.node, words, rows, read) };
      map.plot.setAttribute("aria-label", "Weights of each head; arrow keys read them");
      place.replaceChildren(map.node);
      const last = words.length > 1 ? `“${words.at(-1)}”` : "the start";
      write(heading, `Where each head looks from ${last}`);
    }
    const options = { rows: count, mayLook: () => words.length, top: 1, isMarked: false };
    picture.draw(weights, words.length, options);
    read(map.cursor());
  }
  return { node, draw };
}

/** Field, bars and heads; `choose(beginning)` is told what a reader types. */
export function createNext(choose) {
  const field = createField(choose);
  const bars = createBars();
  const heads = createHeads();
  const node = element(
    "div",
    { class: "attn-next" },
    field.node,
    element("div", { class: "attn-panels attn-half" }, bars.node, heads.node),
  );
  let current = null; // {beginning, letters, words, rows}

  /** Ask a model, and show what it says. */
  function draw(model, { beginning, temperature, topK, numHeads }) {
    const ids = beginning === "" ? [BOUNDARY] : names.read(beginning).ids;
    const T = ids.length;
    const { logits, weights } = model.answer({ ids });
    const last = logits.next.subarray(logits.next.length - names.vocabulary.length);
    const own = chancesOf(last, AS_IS);
    const chances = chancesOf(last, { temperature, topK });
    const letters = [...own.keys()]
      .sort((a, b) => chances[b] - chances[a] || own[b] - own[a] || a - b)
      .map((token) => ({ name: nameOf(token), chance: chances[token], own: own[token] }));
    const rows = new Float64Array(numHeads * T);
    for (let head = 0; head < numHeads; head++) {
      const from = (head * T + T - 1) * T;
      rows.set(weights[0].subarray(from, from + T), head * T);
    }
    const words = ["start", ...beginning];
    current = { beginning, letters, words, rows };
    field.draw(beginning);
    bars.draw(
      beginning,
      letters,
      letters.some(({ chance, own }) => chance !== own),
    );
    heads.draw(words, numHeads, rows);
  }

  /** What is shown, as numbers. */
  function tables() {
    const { beginning, letters, words, rows } = current;
    const chances = letters.map(({ name, chance, own }) => [
      name,
      shortNumber(own, 3),
      shortNumber(chance, 3),
    ]);
    const T = words.length;
    const looks = Array.from({ length: rows.length / T }, (_, head) => [
      `head ${head + 1}`,
      ...Array.from(rows.subarray(head * T, (head + 1) * T), (weight) => shortNumber(weight, 3)),
    ]);
    return [
      createTable(`${sayPlace(beginning)}`, ["letter", "its chance", "as it is drawn"], chances),
      createTable(`Where each head looks from ${words.at(-1)}`, ["", ...words], looks),
    ];
  }
  return { node, draw, tables, current: () => current };
}
