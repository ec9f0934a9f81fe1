// Answer: controls for an answer, and the verdict on it that its check gave when the page was made.

import { element } from "../shared/dom.js";
import { createForm, createLive, createQuietButton, createWidget } from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { inline } from "../shared/text.js";
import { KINDS } from "./fields.js";

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const isText = (value) => typeof value === "string";
  const isTexts = (value) => Array.isArray(value) && value.length > 0 && value.every(isText);
  const names = Object.keys(KINDS);
  const kind = KINDS[read.read("kind", (value) => names.includes(value), names.join(" or "))];
  const labels = read.list("labels", isTexts, "lists of texts");
  const state = { kind, labels, titles: read.texts("titles", labels.length) };
  state.pick = read.whole("pick", labels[0].length);
  const isNumber = (value) => Number.isFinite(value) && value >= 0;
  for (const name of ["tolerance", "near"])
    state[name] = read.read(name, isNumber, "a number from 0");
  state.known = readKnown(read);
  state.verdicts = read.list(
    "verdicts",
    (value) => isText(value?.heading) && isText(value.message) && typeof value.passed === "boolean",
    "verdicts",
  );
  state.table = read.places("table", kind.sizeOfTable(state), state.verdicts.length);
  const isGiven = (value) => Array.isArray(value) && kind.isGiven(value, state);
  read.read("given", isGiven, "an answer of this kind");
  read.read("checked", (value) => typeof value === "boolean", "true or false");
  return state;
}

/** The rows of known numbers of each group of fields. */
function readKnown(read) {
  const isSize = (value) => Number.isInteger(value) && value >= 1;
  const isGroup = (value) => Array.isArray(value) && value.length === 2 && value.every(isSize);
  const groups = read.list("groups", isGroup, "sizes [rows, fields]", 0);
  const total = groups.reduce((sum, [rows, fields]) => sum + rows * fields, 0);
  const numbers = read.numbers("known", total, { size: 8 });
  let rest = numbers;
  return groups.map(([rows, fields]) => {
    const own = Array.from({ length: rows }, (_, i) => rest.subarray(i * fields, (i + 1) * fields));
    rest = rest.subarray(rows * fields);
    return own;
  });
}

/** The verdict that stands in the table for what is given; null while something is missing. */
function verdictOn(given, state) {
  if (state.kind.missing(given, state)) return null;
  const verdict = state.verdicts[state.table[state.kind.placeOf(given, state)]];
  const remark = verdict.passed ? "" : state.kind.remarkOn?.(given, state);
  return remark ? { ...verdict, message: `${remark} ${verdict.message}` } : verdict;
}

/** Whether the reader has answered, and rightly. */
export function isDone(model) {
  return model.get("checked") && verdictOn(model.get("given"), readState(model))?.passed === true;
}

function render({ model, el }) {
  const state = readState(model);
  const { kind } = state;
  const set = setterOf(model);
  const given = () => model.get("given");
  const verdict = createLive();

  function change(answer, words = "") {
    model.set("checked", false);
    set("given", answer);
    verdict.textContent = words;
  }
  const fields = kind.create(state, { given, change });
  const check = element("button", { type: "submit", class: "attn-button" }, "Check");
  const clear = createQuietButton("Clear", () => {
    change(kind.untouched(state));
    fields.focus();
  });
  const buttons = element("div", { class: "attn-row" }, check, clear);
  const form = createForm(submit, ...fields.nodes, buttons, verdict);
  const root = createWidget("answer", "Your answer", form);

  function draw() {
    const checked = model.get("checked");
    const missing = checked ? kind.missing(given(), state) : "";
    const found = checked ? verdictOn(given(), state) : null;
    fields.draw(given(), checked);
    clear.hidden = String(given()) === String(kind.untouched(state));
    verdict.classList.toggle("attn-passed", found?.passed === true);
    verdict.replaceChildren(missing);
    if (found) verdict.append(element("strong", {}, found.heading), " ", ...inline(found.message));
  }

  function submit() {
    set("checked", true);
    if (kind.missing(given(), state)) fields.focus();
  }

  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["given", "checked"], draw);
}

export default { render };
