// GptSteps' controls: which name, which of its tokens, whose head.

import { element, write } from "../shared/dom.js";
import { createButton, createButtonGroup, createSwatch } from "../shared/parts.js";
import { createToolbar } from "../shared/toolbar.js";
import { times } from "./numbers.js";

/** A name in a model's letters, or an error that says what is wrong with it; as checked_name in Python. */
export function checkedName(text, { vocabulary, boundary, most }) {
  const known = (letter) => vocabulary.includes(letter) && letter !== boundary;
  const letters = [...text].map((one) => (vocabulary.includes(one) ? one : one.toLowerCase()));
  const odd = letters.find((letter) => !known(letter));
  if (odd !== undefined) throw new Error(`This model has no letter “${odd}”.`);
  if (letters.length < 1 || letters.length > most) {
    throw new Error(`A name has 1 to ${most} letters here.`);
  }
  return letters.join("");
}

/** Names to choose from, and a field for another one: `choose(name)`. */
export function createNameChoice(names, form, choose) {
  const group = createButtonGroup("Names", names, (i) => choose(names[i]));
  const attributes = { type: "text", autocomplete: "off", autocapitalize: "off" };
  const field = element("input", { ...attributes, spellcheck: "false", size: form.most });
  const label = element("label", {}, "Name", field);
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const node = element("div", { class: "attn-names" }, label, group.node, refusal);

  function refuse(message) {
    write(refusal, message);
    field.setAttribute("aria-invalid", String(message !== ""));
  }
  field.addEventListener("input", () => {
    try {
      const name = checkedName(field.value.trim(), form);
      refuse("");
      choose(name);
    } catch (error) {
      refuse(error.message);
    }
  });
  function draw(name) {
    group.draw(names.indexOf(name));
    if (field === document.activeElement) return;
    field.value = name;
    refuse("");
  }
  return { node, draw };
}

/** The tokens of a name: `choose(token)` is told the one that is to be read. */
export function createTokenChoice(choose) {
  const toolbar = createToolbar("Token", "attn-row attn-tokens");
  let shown = null;
  function draw(letters, nameOf, token) {
    if (shown !== letters.join("")) {
      shown = letters.join("");
      const buttons = letters.map((letter, i) => {
        const button = createButton(letter, () => choose(i));
        button.setAttribute("aria-label", `Token ${nameOf(i)}`);
        return button;
      });
      toolbar.node.replaceChildren();
      toolbar.show(buttons);
    }
    [...toolbar.node.children].forEach((button, i) =>
      button.classList.toggle("attn-to-come", i > token),
    );
    toolbar.press(token);
  }
  return { node: toolbar.node, draw };
}

/** Whose part of the lists is shown. */
export function createHeadChoice(h, choose) {
  const toolbar = createToolbar("Head", "attn-row");
  const buttons = times(h, (head) => createButton(`head ${head + 1}`, () => choose(head)));
  buttons.forEach((button, head) => button.prepend(createSwatch(head), " "));
  toolbar.show(buttons);
  return { node: toolbar.node, draw: toolbar.press };
}
