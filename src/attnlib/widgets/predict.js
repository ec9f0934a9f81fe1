// Predict: a question, choices, and an explanation that waits until the reader has committed.

import { element } from "./shared/dom.js";
import { createWidget } from "./shared/parts.js";
import { redrawOn, setterOf } from "./shared/state.js";

/** The widget's state, checked: it may come from a file that somebody has edited. */
export function readState(model) {
  const [question, explanation] = ["question", "explanation"].map((name) => {
    const text = model.get(name);
    if (typeof text !== "string") throw new Error(`${name} should be text, but is ${typeof text}`);
    return text;
  });
  const choices = model.get("choices");
  if (!Array.isArray(choices) || choices.length < 2) {
    throw new Error(`choices should be at least 2, but there are ${choices?.length ?? "none"}`);
  }
  const exists = (i) => Number.isInteger(i) && i >= 0 && i < choices.length;
  const answers = model.get("answers");
  if (!Array.isArray(answers) || !answers.length || !answers.every(exists)) {
    const given = JSON.stringify(answers);
    throw new Error(`answers should be among 0 to ${choices.length - 1}, but are ${given}`);
  }
  const choice = model.get("choice") ?? null;
  if (choice !== null && !exists(choice)) {
    throw new Error(`choice should be one of 0 to ${choices.length - 1}, but is ${choice}`);
  }
  return { question, explanation, choices: choices.map(String), answers };
}

/** Text as nodes: `code` and *emphasis* become elements, and whatever else is in it stays text. */
function inline(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(/`([^`]+)`|\*(?!\s)([^*]*[^*\s])\*/g)) {
    const [whole, code, emphasis] = match;
    nodes.push(text.slice(end, match.index));
    nodes.push(code === undefined ? element("em", {}, emphasis) : element("code", {}, code));
    end = match.index + whole.length;
  }
  return [...nodes, text.slice(end)];
}

/** A paragraph for each part of a text between empty lines. */
function paragraphs(text, tag) {
  const parts = text.trim().split(/\n\s*\n/);
  return parts.map((part) => element(tag, { class: "attn-paragraph" }, ...inline(part)));
}

function createChoice(text, index, choose) {
  const radio = element("input", { type: "radio", name: "choice", value: index });
  const mark = element("strong", { class: "attn-mark" });
  const node = element("label", {}, radio, element("span", {}, ...inline(text)), mark);
  radio.addEventListener("change", () => choose(index));

  function draw(isChosen, isRight, committed) {
    radio.checked = isChosen;
    const word = isRight
      ? isChosen
        ? "✓ your answer, right"
        : "✓ right answer"
      : isChosen
        ? "✗ your answer"
        : "";
    mark.textContent = committed ? word : "";
    node.classList.toggle("attn-right", committed && isRight);
    node.classList.toggle("attn-wrong", committed && isChosen && !isRight);
  }
  return { node, radio, draw };
}

function render({ model, el }) {
  const { question, explanation, choices, answers } = readState(model);
  const set = setterOf(model);
  const options = choices.map((text, i) => createChoice(text, i, (index) => set("choice", index)));
  const fieldset = element(
    "fieldset",
    {},
    element("legend", {}, ...paragraphs(question, "span")), // a legend can't hold a <p>
    ...options.map(({ node }) => node),
  );
  const commit = element("button", { type: "submit" }, "Commit");
  const again = element("button", { type: "button" }, "Think again");
  const verdict = element("output", { class: "attn-verdict", "aria-live": "polite" });
  const unfolded = element("div", { class: "attn-explanation", role: "group", tabindex: -1 });
  unfolded.setAttribute("aria-label", "Explanation");
  unfolded.append(...paragraphs(explanation, "p"), again);
  // A form keeps the radio buttons of several widgets apart, and lets Enter commit.
  const form = element("form", {}, fieldset, commit, verdict, unfolded);
  const root = createWidget("predict", "Predict", form);

  function draw() {
    const choice = model.get("choice") ?? null;
    const committed = model.get("committed") && choice !== null;
    options.forEach((option, i) => option.draw(i === choice, answers.includes(i), committed));
    fieldset.disabled = committed;
    commit.hidden = committed;
    unfolded.hidden = !committed;
    verdict.replaceChildren();
    if (!committed) return;
    const isRight = answers.includes(choice);
    const right = answers.flatMap((i) => [i === answers[0] ? "" : " · ", ...inline(choices[i])]);
    verdict.append(element("strong", {}, isRight ? "Right." : "Not this one."));
    if (!isRight) verdict.append(" Right: ", ...right);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (model.get("committed")) return;
    if ((model.get("choice") ?? null) === null) {
      verdict.textContent = "Pick an answer first; a guess will do.";
      options[0].radio.focus();
      return;
    }
    set("committed", true);
    unfolded.focus(); // the button that had the focus is gone; what follows is to be read
  });
  again.addEventListener("click", () => {
    model.set("committed", false);
    set("choice", null);
    options[0].radio.focus();
  });

  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["choice", "committed"], draw);
}

export default { render };
