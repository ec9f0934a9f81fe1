// Numbers in input fields: each is taken over as it is typed, or refused in words.

import { calculated } from "./calculation.js";
import { element } from "./dom.js";
import { hasDoubtfulComma, parseNumber, withMinus } from "./numbers.js";
import { onDragSideways } from "./touch.js";

const LONGEST = 24; // characters of a text that are told
const STEP = 0.1; // by which a drag changes a number, and an arrow key with shift
const PIXELS = 4; // of a drag that make a step
const MASKED = /^\s*[-\u2212]\s*(∞|inf(inity)?)\s*$/i;
const BEGUN_NUMBER = /^\s*([\d.,+\-\u2212]*\/)?\s*[+\-\u2212]?[.,]?$/;
const BEGUN_MASK = /^\s*[-\u2212]\s*[infty]*$/i;

/** A float32 as it was most likely typed: 0.1 and not 0.10000000149. */
function asTyped(number) {
  return number === -Infinity ? "\u2212∞" : withMinus(Number(number.toPrecision(7)));
}

/** What a reader typed as a number, perhaps as a fraction or as minus infinity, or NaN. */
function numberOf(text, masks) {
  if (masks && MASKED.test(text)) return -Infinity;
  return Math.fround((text.includes("/") ? calculated : parseNumber)(text));
}

/** Numbers as little-endian float32. */
export function float32Bytes(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, i) => view.setFloat32(4 * i, number, true));
  return view;
}

/** Why a text can't be taken over, or null. What may still become a number waits until `done`. */
function reasonToRefuse(text, number, { largest, masks, done }) {
  if (Number.isNaN(number)) {
    const isBegun = BEGUN_NUMBER.test(text) || (masks && BEGUN_MASK.test(text));
    if (isBegun && !done) return null;
    if (text.trim() === "") return "no number";
    const short = text.length > LONGEST ? `${text.slice(0, LONGEST)}\u2026` : text;
    const quoted = `\u201c${short}\u201d`;
    if (hasDoubtfulComma(text)) return `in ${quoted} the comma may mean thousands or the point`;
    return `${quoted} is not a number`;
  }
  if (Math.abs(number) <= largest || (masks && number === -Infinity)) return null;
  return `only \u2212${largest} to ${largest}${masks ? " or \u2212∞" : ""} is possible`;
}

/**
 * One input field, in which a number is typed, moved by arrow keys or dragged. It tells
 * `accept(number)` and `refuse(reason or null)`, and `settle()` when a change has ended.
 */
function createNumberField(label, { largest, masks, accept, refuse, settle }) {
  const attributes = { type: "text", autocomplete: "off", spellcheck: "false" };
  const input = element("input", { ...attributes, class: "attn-number-field" });
  input.setAttribute("aria-label", label);
  let number = 0;
  let dragged = 0; // the number where a drag began

  function take(text, done) {
    const typed = numberOf(text, masks);
    const reason = reasonToRefuse(text, typed, { largest, masks, done });
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
 * A field for each of these places, with numbers from -largest to largest, and where one `masks` also
 * minus infinity. `change(index, number)` is told each, and `settle()` when another change would be a
 * new one; `refusal` says which place isn't taken over, and why.
 */
export function createNumberFields(places, { name, largest, masks = false, change, settle }) {
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const reasons = new Map(); // index -> why its text was refused
  const fields = places.map((place, index) =>
    createNumberField(`${name}, ${place}`, {
      largest,
      masks,
      settle,
      accept: (number) => change(index, number),
      refuse(reason) {
        if (reason === null) reasons.delete(index);
        else reasons.set(index, `${place}: ${reason}`);
        refusal.textContent = [...reasons.values()].at(-1) ?? "";
      },
    }),
  );
  const draw = (numbers, always = false) =>
    fields.forEach((field, i) => field.show(numbers[i], always));
  return { inputs: fields.map(({ input }) => input), refusal, draw };
}
