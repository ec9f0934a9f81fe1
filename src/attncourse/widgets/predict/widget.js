// Predict: a question, choices, and an explanation that waits until the reader has committed.

import { element } from "../shared/dom.js";
import { createForm, createLive, createQuietButton, createWidget } from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { inline, paragraphs } from "../shared/text.js";

/** The widget's state, checked. */
export function readState(model) {
  const read = readerOf(model);
  const [question, explanation] = [read.text("question"), read.text("explanation")];
  const isText = (value) => typeof value === "string";
  const choices = read.list("choices", isText, "texts", 2);
  const answers = read.indices("answers", choices.length, "choices", 1);
  if ((model.get("choice") ?? null) !== null) read.index("choice", choices.length);
  read.read("committed", (value) => typeof value === "boolean", "true or false");
  return { question, explanation, choices, answers };
}

/** Whether the reader has committed to a choice. */
export function isDone(model) {
  return model.get("committed") && (model.get("choice") ?? null) !== null;
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
  const choose = (index) => {
    model.set("committed", false); // a state may say so without a choice
    set("choice", index);
  };
  const options = choices.map((text, i) => createChoice(text, i, choose));
  const fieldset = element(
    "fieldset",
    {},
    element("legend", {}, ...paragraphs(question, "span")), // a legend can't hold a <p>
    ...options.map(({ node }) => node),
  );
  const commit = element("button", { type: "submit", class: "attn-button" }, "Commit");
  const again = createQuietButton("Think again", () => {
    model.set("committed", false);
    set("choice", null);
    options[0].radio.focus();
  });
  const verdict = createLive();
  const unfolded = element("div", { class: "attn-explanation", role: "group", tabindex: -1 });
  unfolded.setAttribute("aria-label", "Explanation");
  const sayRight = () =>
    answers.flatMap((i) => [i === answers[0] ? "Right: " : " · ", ...inline(choices[i])]);
  // Paper shows the answer also to a reader who hasn't committed; see the page's paper.css.
  const onPaper = element("p", { class: "attn-on-paper" }, ...sayRight());
  unfolded.append(...paragraphs(explanation, "p"), again);
  // A form keeps the radio buttons of several widgets apart, and lets Enter commit.
  const form = createForm(submit, fieldset, commit, verdict, onPaper, unfolded);
  const root = createWidget("predict", "Predict", form);

  function draw() {
    const choice = model.get("choice") ?? null;
    const committed = isDone(model);
    options.forEach((option, i) => option.draw(i === choice, answers.includes(i), committed));
    fieldset.disabled = committed;
    commit.hidden = committed;
    unfolded.hidden = !committed;
    verdict.replaceChildren();
    if (!committed) return;
    const isRight = answers.includes(choice);
    verdict.append(element("strong", {}, isRight ? "Right." : "Not this one."));
    if (!isRight) verdict.append(" ", ...sayRight());
  }

  function submit() {
    if (isDone(model)) return;
    if ((model.get("choice") ?? null) === null) {
      verdict.textContent = "Pick an answer first; a guess will do.";
      options[0].radio.focus();
      return;
    }
    set("committed", true);
    unfolded.focus(); // the button that had the focus is gone; what follows is to be read
  }

  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["choice", "committed"], draw);
}

export default { render };
