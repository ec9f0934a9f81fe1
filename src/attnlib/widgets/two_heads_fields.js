// A matrix of numbers in input fields: each is taken over as it is typed, or refused in words.

import { element } from "./shared/dom.js";
import { hasDoubtfulComma, parseFraction, parseNumber } from "./shared/numbers.js";
import { onDragSideways } from "./shared/touch.js";

const LONGEST = 24; // characters of a text that are told
const STEP = 0.1; // by which a drag changes a number, and an arrow key with shift
const PIXELS = 4; // of a drag that make a step

/** A float32 as it was most likely typed: 0.1 and not 0.10000000149. */
function asTyped(number) {
  return String(Number(number.toPrecision(7)));
}

/** Numbers as little-endian float32. */
export function float32Bytes(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, i) => view.setFloat32(4 * i, number, true));
  return view;
}

/** Why a text can't be taken over, or null. What may still become a number waits until `done`. */
function reasonToRefuse(text, number, largest, done) {
  if (Number.isNaN(number)) {
    const begun = /^\s*([\d.,+\-\u2212]*\/)?\s*[+\-\u2212]?[.,]?$/.test(text);
    if (begun && !done) return null;
    if (text.trim() === "") return "no number";
    const short = text.length > LONGEST ? `${text.slice(0, LONGEST)}\u2026` : text;
    const told = `\u201c${short}\u201d`;
    if (hasDoubtfulComma(text)) return `in ${told} the comma may mean thousands or the point`;
    return `${told} is not a number`;
  }
  if (Math.abs(number) <= largest) return null;
  return `only \u2212${largest} to ${largest} is possible`;
}

/**
 * One input field, in which a number is typed, moved by arrow keys or dragged. It tells
 * `accept(number)` and `refuse(reason or null)`, and `settle()` when a change has ended.
 */
function createNumberField(label, largest, { accept, refuse, settle }) {
  const input = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  input.setAttribute("aria-label", label);
  let number = 0;
  let dragged = 0; // the number where a drag began

  function take(text, done) {
    const typed = Math.fround((text.includes("/") ? parseFraction : parseNumber)(text));
    const reason = reasonToRefuse(text, typed, largest, done);
    if (reason === null) input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
    refuse(reason && `${reason}; it is still ${asTyped(number)}.`);
    if (reason !== null || Number.isNaN(typed) || typed === number) return;
    number = typed;
    accept(number);
  }
  input.addEventListener("input", () => take(input.value, false));
  input.addEventListener("change", () => take(input.value, true));
  input.addEventListener("blur", settle);
  function moveTo(wanted) {
    if (Math.abs(wanted) > largest) return;
    input.value = asTyped(Math.fround(wanted));
    take(input.value, true);
  }
  input.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    moveTo(number + (event.shiftKey ? step * STEP : step));
  });
  // A mouse that drags would mark the digits. A click still comes to the field, and marks them all.
  input.addEventListener("mousedown", (event) => {
    if (event.button === 0 && document.activeElement !== input) event.preventDefault();
  });
  input.addEventListener("click", () => {
    if (document.activeElement === input) return;
    input.focus();
    input.select();
  });
  onDragSideways(input, {
    begin() {
      settle();
      dragged = number;
    },
    move: (pixels) => moveTo(dragged + STEP * Math.round(pixels / PIXELS)),
  });

  /** Show a number; a field that has it already is left alone, for it may be half typed. */
  function show(newNumber, always) {
    if (newNumber === number && input.value !== "" && !always) return;
    number = newNumber;
    input.value = asTyped(number);
    input.removeAttribute("aria-invalid");
    refuse(null);
  }
  return { input, show };
}

/**
 * A matrix to edit, with numbers from -largest to largest; `change(index, number)` is told each, and
 * `settle()` when another change would be a new one.
 */
export function createNumberMatrix(caption, rowNames, columns, { largest, change, settle }) {
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const reasons = new Map(); // index -> why its text was refused
  const fields = Array.from({ length: rowNames.length * columns }, (_, index) => {
    const place = `${rowNames[Math.floor(index / columns)]}, column ${(index % columns) + 1}`;
    return createNumberField(`${caption.textContent}, ${place}`, largest, {
      settle,
      accept: (number) => change(index, number),
      refuse(reason) {
        if (reason === null) reasons.delete(index);
        else reasons.set(index, `${place}: ${reason}`);
        refusal.textContent = [...reasons.values()].at(-1) ?? "";
      },
    });
  });
  const body = rowNames.map((name, row) => {
    const cells = fields.slice(row * columns, (row + 1) * columns);
    const header = element("th", { scope: "row" }, name);
    return element("tr", {}, header, ...cells.map(({ input }) => element("td", {}, input)));
  });
  const table = element("table", {}, element("caption", {}, caption));
  table.append(element("tbody", {}, ...body));
  const node = element("div", { class: "attn-editor" });
  node.append(element("div", { class: "attn-scroll" }, table), refusal);
  const draw = (numbers, always = false) =>
    fields.forEach((field, i) => field.show(numbers[i], always));
  return { node, draw };
}
