// Parts that widgets are put together from; widget.css draws them.

import { useHeadColor } from "./color.js";
import { element, write } from "./dom.js";
import { keepKeys } from "./keys.js";
import { tellMoves } from "./touch.js";

/** The frame of a widget: its title, what it shows, and keys that JupyterLab leaves to it. */
export function createWidget(name, title, ...children) {
  const attributes = { class: `attn-widget attn-${name}`, role: "group", "aria-label": title };
  const root = element(
    "div",
    attributes,
    element("p", { class: "attn-title" }, title),
    ...children,
  );
  keepKeys(root);
  return root;
}

/** A quiet line that says what something is. */
export function createNote(...content) {
  return element("p", { class: "attn-note" }, ...content);
}

/** A line above a panel that says what it shows. */
export function createHeading(...content) {
  return element("p", { class: "attn-heading" }, ...content);
}

/** The row of a widget's controls. */
export function createControls(...controls) {
  return element("div", { class: "attn-controls" }, ...controls);
}

/** Parts side by side where there is room; --attn-columns of the widget's sheet says how wide. */
export function createPanels(...panels) {
  return element("div", { class: "attn-panels" }, ...panels);
}

/** What a reader moves, and what comes of it: beside each other where there is room for both. */
export function createPanes(moved, shown) {
  return element(
    "div",
    { class: "attn-panes attn-wide" },
    element("div", {}, ...moved),
    element("div", {}, ...shown),
  );
}

/**
 * A slider between its name and a reading. `choose(position)` is told each move; `ticks` are texts
 * that stand below it, from its one end to the other.
 */
export function createSlider(name, { min = 0, max, choose, ticks = [] }) {
  const input = element("input", { type: "range", min, step: 1 });
  tellMoves(input, () => choose(input.valueAsNumber));
  const reading = element("span", { class: "attn-reading", "aria-hidden": "true" });
  const texts = element("span", { class: "attn-ticks", "aria-hidden": "true" });
  const track = element("span", { class: "attn-track" }, input, texts);
  const node = element(
    "label",
    { class: "attn-slider" },
    element("span", {}, name),
    track,
    reading,
  );
  /** Let it end elsewhere, with other ticks. */
  function fit(end, shown) {
    input.max = end;
    input.disabled = min === end;
    texts.replaceChildren(...shown.map((text) => element("span", {}, text)));
    texts.hidden = shown.length === 0;
    texts.classList.toggle("attn-many", shown.length > 6);
    texts.classList.toggle(
      "attn-tight",
      shown.length < 8 && shown.every(({ length }) => length < 3),
    );
    track.classList.toggle("attn-ticked", shown.length > 0);
  }
  function draw(position, text) {
    input.value = position;
    input.setAttribute("aria-valuetext", text);
    write(reading, text);
  }
  fit(max, ticks);
  return { node, fit, draw };
}

/** A checkbox with its name, which may be several nodes. */
export function createCheckbox(name, choose) {
  const input = element("input", { type: "checkbox" });
  input.addEventListener("change", () => choose(input.checked));
  const node = element("label", {}, input, ...[name].flat());
  function draw(checked, isOffered = true) {
    input.checked = checked;
    input.disabled = !isOffered;
  }
  return { node, draw };
}

/** A button that does something. */
export function createButton(text, press) {
  const node = element("button", { type: "button", class: "attn-button" }, text);
  node.addEventListener("click", press);
  return node;
}

/** A button that takes something back, or that few readers need. */
export function createQuietButton(text, press) {
  const node = createButton(text, press);
  node.classList.add("attn-quiet-button");
  return node;
}

/** Buttons with these texts, one of them pressed: `choose(place)` gets its place. */
export function createButtonGroup(name, texts, choose) {
  const buttons = texts.map((text, i) => createButton(text, () => choose(i)));
  for (const button of buttons) button.dir = "auto";
  const attributes = { class: "attn-row attn-options", role: "group", "aria-label": name };
  const node = element("div", attributes, ...buttons);
  function draw(chosen) {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
  }
  return { node, draw };
}

/** A form that is handed in by its submit button, and by Enter in a field: `submit()` is called. */
export function createForm(submit, ...children) {
  const node = element("form", {}, ...children);
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  // Browsers do so themselves, but not below JupyterLab. An Enter that takes over what an input
  // method offers hands nothing in; Safari tells it by its number alone.
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.localName !== "input") return;
    if (event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    node.requestSubmit();
  });
  return node;
}

/** What a widget says of its state, read aloud when it changes. */
export function createLive() {
  return element("output", { class: "attn-live", "aria-live": "polite" });
}

/** A square of a head's color; hollow where `head` is null. */
export function createSwatch(head) {
  const node = element("span", { class: "attn-swatch" });
  if (head !== null) useHeadColor(node, head);
  return node;
}

/** What marks mean: `entries` are [mark, words], a mark being a node or the class of one. */
export function createLegend(...entries) {
  const icon = (name) => element("span", { class: `attn-icon ${name}` });
  const spans = entries.map(([mark, words]) =>
    element("span", { class: "attn-entry" }, typeof mark === "string" ? icon(mark) : mark, words),
  );
  return element("div", { class: "attn-legend" }, ...spans);
}

/** The scale of weights, and what else is to be seen, as for createLegend. */
export function createWeightsLegend(...entries) {
  const legend = createLegend(...entries);
  const scale = element("span", { class: "attn-scale", "aria-hidden": "true" });
  legend.prepend(element("span", { class: "attn-entry" }, "weight 0", scale, "1"));
  return legend;
}
