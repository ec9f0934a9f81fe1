// Tokenizer: a text cut into tokens by merges that were learned, and what may follow it.

import { element, reachWhileScrolling } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import {
  createControls,
  createHeading,
  createLive,
  createNote,
  createSlider,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createFold, createTable } from "../shared/tables.js";

const BYTES = 256;
const LONGEST = 200; // as in widget.py
const MOST_NEXT = 8; // letters whose chances are shown
const UNSEEN = /[\p{Cc}\p{Z}]/u; // tabs and the like, and spaces of other kinds
const RIGHT_TO_LEFT =
  /^\P{L}*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const isCount = (value) => Number.isInteger(value) && value >= 0;
  const most = read.read("most", isCount, "a whole number from 0");
  const isText = (value) => typeof value === "string" && value.length <= LONGEST;
  read.read("text", isText, `text of at most ${LONGEST} letters`);
  const areThere = (value) => isCount(value) && value <= most;
  read.read("num_merges", areThere, `a whole number from 0 to ${most}`);
  const ids = read.places("merges", 2 * most, BYTES + most);
  const merges = Array.from({ length: most }, (_, i) => [ids[2 * i], ids[2 * i + 1]]);
  if (merges.some((pair, i) => Math.max(...pair) >= BYTES + i)) {
    throw new Error("merges should join tokens that are there before them");
  }
  const vocabulary = read.list("vocabulary", (value) => typeof value === "string", "letters", 0);
  const counts = read.numbers("counts", vocabulary.length ** 2);
  return { merges, vocabulary, counts };
}

/** The bytes of each token. */
export function tokensOf(merges) {
  const tokens = Array.from({ length: BYTES }, (_, byte) => [byte]);
  for (const [left, right] of merges) tokens.push([...tokens[left], ...tokens[right]]);
  return tokens;
}

/** The ids of a text after the first `number` merges, as attncourse.tokens finds them. */
export function encode(text, merges, number) {
  const ranks = new Map(merges.slice(0, number).map((pair, rank) => [pair.join(), rank]));
  const chunks = text.match(/ ?[^ \n]+|[ \n]/g) ?? [];
  return chunks.flatMap((chunk) => {
    let ids = Array.from(new TextEncoder().encode(chunk));
    for (;;) {
      const rankAt = (i) => ranks.get(`${ids[i]},${ids[i + 1]}`) ?? Infinity;
      const earliest = Math.min(...ids.map((_, i) => rankAt(i)));
      if (earliest === Infinity) return ids;
      const merged = [];
      for (let i = 0; i < ids.length; i++) {
        const isPair = ids[i] === merges[earliest][0] && ids[i + 1] === merges[earliest][1];
        merged.push(isPair ? BYTES + earliest : ids[i]);
        if (isPair) i++;
      }
      ids = merged;
    }
  });
}

/**
 * The letters that may follow a text and how likely each is by the counts, likely ones first; null
 * where nothing was counted after its last letter. A space and an empty text are the boundary.
 */
export function nextLetters(text, vocabulary, counts) {
  const size = vocabulary.length;
  const last = Array.from(text.toLowerCase()).at(-1) ?? " ";
  const row = last === " " ? size - 1 : vocabulary.indexOf(last);
  const own = row < 0 ? [] : Array.from(counts.slice(row * size, (row + 1) * size));
  const total = own.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const found = own.map((count, i) => ({ letter: vocabulary[i], share: count / total }));
  return found.filter(({ share }) => share > 0).sort((a, b) => b.share - a.share);
}

/** A token as it is read: text with its spaces seen; or bytes, where it is a part of a letter or
 * can't be seen. */
export function tokenText(bytes) {
  const inBytes = bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const text = decoder.decode(Uint8Array.from(bytes)).replaceAll(" ", "␣");
    return UNSEEN.test(text) ? inBytes : text;
  } catch {
    return inBytes;
  }
}

/** A number of things in words. */
function many(number, thing) {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** The letters that may come next, as bars. */
function createNext(vocabulary, counts) {
  const heading = createHeading();
  const list = element("ul", { class: "attn-next" });
  const rest = createNote();
  const nameOf = (letter) => (letter === vocabulary.at(-1) ? "end" : letter);

  function draw(text) {
    const found = nextLetters(text, vocabulary, counts);
    const last = Array.from(text).at(-1);
    const read = last && tokenText([...new TextEncoder().encode(last)]);
    const place = (last ?? " ") === " " ? "At the beginning" : `After “${read}”`;
    heading.textContent = found
      ? `${place}, the bigram expects`
      : `${place}, the bigram knows nothing: it never met this letter.`;
    const shown = (found ?? []).slice(0, MOST_NEXT);
    const bars = shown.map(({ letter, share }) => {
      const bar = element("span", { class: "attn-bar" });
      bar.style.width = `${100 * share}%`;
      return element(
        "li",
        {},
        element("span", {}, nameOf(letter)),
        element("span", { class: "attn-room" }, bar),
        element("span", {}, shortNumber(share)),
      );
    });
    list.replaceChildren(...bars);
    const others = (found ?? []).slice(MOST_NEXT);
    const left = others.reduce((sum, { share }) => sum + share, 0);
    rest.textContent =
      others.length > 0 ? `${many(others.length, "other")}: ${shortNumber(left)} together` : "";
  }
  list.style.setProperty("--most", MOST_NEXT);
  return { node: element("div", {}, heading, list, rest), draw };
}

/** The tokens of a text as a table, in a fold. */
function createNumbers(tokens) {
  return createFold((ids) => {
    const rows = ids.map((id) => [tokenText(tokens[id]), String(id), tokens[id].join(" ")]);
    return [createTable("Each token of the text", ["token", "id", "bytes"], rows)];
  });
}

function render({ model, el }) {
  const { merges, vocabulary, counts } = readState(model);
  const tokens = tokensOf(merges);
  const set = setterOf(model);
  const field = element("input", { type: "text", dir: "auto", maxlength: LONGEST });
  const attributes = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" };
  for (const [name, value] of Object.entries(attributes)) field.setAttribute(name, value);
  field.addEventListener("input", () => set("text", field.value));
  const slider = createSlider("Merges", {
    max: merges.length,
    choose: (number) => set("num_merges", number),
  });
  const last = createNote();
  const list = element("ol", { class: "attn-pieces", "aria-label": "Tokens with their ids" });
  // Any text has the room that the first one takes without a merge, so that nothing moves below it.
  const room = element("ol", { class: "attn-unmerged", "aria-hidden": "true" });
  room.append(...encode(model.get("text"), merges, 0).map((id) => createPiece(id, 0)));
  const scroll = element("div", { class: "attn-seen" }, list);
  reachWhileScrolling(scroll, "Tokens");
  const live = createLive();
  const table = createNumbers(tokens);
  const next = vocabulary.length > 0 ? createNext(vocabulary, counts) : null;
  const root = createWidget(
    "tokenizer",
    "A text in tokens",
    createNote(`Learned from: ${model.get("origin")}.`),
    createControls(
      element("label", { class: "attn-typed" }, element("span", {}, "Text"), field),
      slider.node,
    ),
    last,
    element("div", { class: "attn-roomy" }, room, scroll),
    live,
    ...(next ? [next.node] : []),
    table.node,
  );

  function createPiece(id, number) {
    const isNew = number > 0 && id === BYTES + number - 1;
    return element(
      "li",
      { class: id < BYTES ? "attn-byte" : isNew ? "attn-merged attn-new" : "attn-merged" },
      element("bdi", {}, tokenText(tokens[id])),
      element("span", { class: "attn-id" }, String(id)),
    );
  }
  function draw() {
    const [text, number] = [model.get("text"), model.get("num_merges")];
    if (field.value !== text) field.value = text;
    slider.draw(number, String(number));
    const parts = number > 0 ? merges[number - 1].map((id) => tokenText(tokens[id])) : [];
    last.textContent =
      number > 0
        ? `The last merge joins ${parts.join(" and ")}.`
        : "No merge: each byte is a token.";
    const ids = encode(text, merges, number);
    list.dir = RIGHT_TO_LEFT.test(text) ? "rtl" : "ltr";
    list.replaceChildren(...ids.map((id) => createPiece(id, number)));
    const letters = many(Array.from(text).length, "character");
    const size = new TextEncoder().encode(text).length;
    live.textContent =
      `${letters} in ${many(size, "byte")}: ${many(ids.length, "token")}, ` +
      `from a vocabulary of ${BYTES + number}`;
    next?.draw(text);
    table.draw(ids, { summary: "The tokens", label: "Tokens, ids and bytes" });
  }

  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["text", "num_merges"], draw);
}

export default { render };
