// HeadLab's sentence: its words, what each is asked, and what the model answers.

import { concord } from "./engine/language.js";
import { answersOf, partOf } from "./head_lab_findings.js";
import { element } from "./shared/dom.js";
import { createButton, createForm } from "./shared/parts.js";

/**
 * What is asked of each word of a task's sentence: lists of {readout, relation, what, right}; `right`
 * is an answer's place.
 */
export function questionsOf({ words, answers, partners }, { readouts, relations }) {
  return words.map((_, word) =>
    Object.keys(readouts).flatMap((readout) => {
      const right = answers[readout][word];
      if (right === null) return [];
      const found = relations.find(
        ({ name, readout: own }) => own === readout && word in partners[name],
      );
      // Only an adjective without an adverb is asked for a partner that isn't there.
      const relation = found?.name ?? null;
      return [{ readout, relation, what: relation ? partOf(relation) : "adverb", right }];
    }),
  );
}

/** The answers of a model to a sentence's questions, in the same lists; null where it has none. */
export function answeredBy(logits, questions, { readouts }) {
  const chosen = Object.entries(readouts).map(([readout, answers]) => [
    readout,
    answersOf(logits[readout], answers.length),
  ]);
  const found = Object.fromEntries(chosen);
  return questions.map((own, word) => own.map(({ readout }) => found[readout][word]));
}

/** A word with what it answers; other words may be chosen in its place. */
function createCard(word, place, others, questions, readouts, choose) {
  const field =
    others.length > 1
      ? element(
          "select",
          { "aria-label": `Word ${place + 1}` },
          ...others.map((text) => element("option", {}, text)),
        )
      : element("span", { class: "attn-word" }, word);
  if (others.length > 1) {
    field.value = word;
    field.addEventListener("change", () => choose(place, field.value));
  }
  const slots = questions.map(({ what }) => {
    const answer = element("span", { class: "attn-given" });
    const mark = element("span", { class: "attn-mark" });
    const node = element("span", { class: "attn-slot" }, `${what}: `, answer, mark);
    return { node, answer, mark };
  });
  const node = element("div", { class: "attn-card" }, field, ...slots.map((slot) => slot.node));

  function draw(given) {
    slots.forEach(({ node: slot, answer, mark }, i) => {
      const { readout, right } = questions[i];
      const text = (place) => readouts[readout][place];
      const isWrong = given !== null && given[i] !== right;
      slot.classList.toggle("attn-wrong", isWrong);
      answer.textContent = text(given === null ? right : given[i]);
      mark.textContent = given === null ? "" : isWrong ? ` ✗ ${text(right)}` : " ✓";
    });
  }
  return { node, field, draw };
}

/**
 * A sentence of a setting that a reader changes word by word, types (one of Concord) or has drawn with
 * `chance`: `choose(sentence)` is told a new one, as engine/ has it.
 */
export function createSentence(setting, chance, choose) {
  const { task } = setting;
  const field = element("input", { type: "text", "aria-label": "A sentence of the language" });
  field.autocomplete = "off";
  field.spellcheck = false;
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const submit = element("button", { type: "submit", class: "attn-button" }, "Ask about it");
  const form = createForm(
    () => {
      try {
        refuse("");
        if (field.value.trim() === "") throw new Error("Type a sentence.");
        choose(concord.read(field.value));
      } catch (error) {
        refuse(error.message);
      }
    },
    ...(task === concord ? [field, submit] : []),
    createButton(setting.another, () => {
      refuse("");
      choose(task.draw(chance));
    }),
  );
  form.className = "attn-row";
  const cards = element("div", { class: "attn-cards" });
  const node = element("div", { class: "attn-sentence" }, cards, form, refusal);
  let shown = null;
  let list = [];

  function refuse(message) {
    refusal.textContent = message.replace(/^text must/, "This must");
    field.setAttribute("aria-invalid", String(message !== ""));
  }

  function replace(place, word) {
    choose(setting.changed(shown, place, word));
    list[place].field.focus();
  }

  /** `given` has the model's answers, as answeredBy; null before there are any. */
  function draw(sentence, questions, given) {
    if (sentence !== shown) {
      shown = sentence;
      const { words } = sentence;
      list = words.map((word, place) => {
        const others = setting.alternatives(sentence, place);
        return createCard(word, place, others, questions[place], task.readouts, replace);
      });
      cards.replaceChildren(...list.map((card) => card.node));
      if (field !== document.activeElement) field.value = words.join(" ");
      refuse("");
    }
    list.forEach((card, place) => card.draw(given?.[place] ?? null));
  }
  return { node, draw };
}
