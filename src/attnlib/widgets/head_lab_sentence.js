// HeadLab's sentence: its words, what each is asked, and what the model answers.

import { concord } from "./engine/language.js";
import { answersOf } from "./head_lab_findings.js";
import { element } from "./shared/dom.js";
import { createButton, createForm } from "./shared/parts.js";

/** What is asked of each word: lists of {readout, relation, what, right}; `right` is an answer's place. */
export function questionsOf({ words, answers, partners }) {
  return words.map((_, word) =>
    Object.keys(concord.readouts).flatMap((readout) => {
      const right = answers[readout][word];
      if (right === null) return [];
      const found = concord.relations.find(
        ({ name, readout: own }) => own === readout && word in partners[name],
      );
      // Only an adjective without an adverb is asked for a partner that isn't there.
      const relation = found?.name ?? null;
      return [{ readout, relation, what: relation?.split(">")[1] ?? "adverb", right }];
    }),
  );
}

/** The answers of a model to a sentence's questions, in the same lists; null where it has none. */
export function answeredBy(logits, questions) {
  const chosen = Object.entries(concord.readouts).map(([readout, answers]) => [
    readout,
    answersOf(logits[readout], answers.length),
  ]);
  const found = Object.fromEntries(chosen);
  return questions.map((own, word) => own.map(({ readout }) => found[readout][word]));
}

/** A text in which another word stands at a place. */
function replaced(words, place, word) {
  return Object.assign([...words], { [place]: word }).join(" ");
}

/** Words that may stand in place of one, itself among them. */
export function alternatives(words, place) {
  const behind = concord.nextWords(words.slice(0, place).join(" "));
  return behind.filter((word) => {
    if (word === words[place]) return true;
    try {
      return concord.read(replaced(words, place, word)).words.length === words.length;
    } catch {
      return false;
    }
  });
}

/** A word with what it answers; other words may be chosen in its place. */
function createCard(words, place, questions, choose) {
  const others = alternatives(words, place);
  const word =
    others.length > 1
      ? element(
          "select",
          { "aria-label": `Word ${place + 1}` },
          ...others.map((text) => element("option", {}, text)),
        )
      : element("span", { class: "attn-word" }, words[place]);
  if (others.length > 1) {
    word.value = words[place];
    word.addEventListener("change", () => choose(place, word.value));
  }
  const slots = questions.map(({ what }) => {
    const answer = element("span", { class: "attn-given" });
    const mark = element("span", { class: "attn-mark" });
    const node = element("span", { class: "attn-slot" }, `${what}: `, answer, mark);
    return { node, answer, mark };
  });
  const node = element("div", { class: "attn-card" }, word, ...slots.map((slot) => slot.node));

  function draw(given) {
    slots.forEach(({ node: slot, answer, mark }, i) => {
      const { readout, right } = questions[i];
      const text = (place) => concord.readouts[readout][place];
      const isWrong = given !== null && given[i] !== right;
      slot.classList.toggle("attn-wrong", isWrong);
      answer.textContent = text(given === null ? right : given[i]);
      mark.textContent = given === null ? "" : isWrong ? ` ✗ ${text(right)}` : " ✓";
    });
  }
  return { node, word, draw };
}

/**
 * A sentence that a reader changes word by word, types or has drawn: `choose(sentence)` is told a
 * new one, as language.js has it.
 */
export function createSentence({ choose, draw: drawSentence }) {
  const field = element("input", { type: "text", "aria-label": "A sentence of the language" });
  field.autocomplete = "off";
  field.spellcheck = false;
  const refusal = element("p", { class: "attn-refusal", role: "status" });
  const submit = element("button", { type: "submit", class: "attn-button" }, "Ask about it");
  const form = createForm(
    () => {
      try {
        refuse("");
        choose(concord.read(field.value));
      } catch (error) {
        refuse(error.message);
      }
    },
    field,
    submit,
    createButton("Another sentence", () => {
      refuse("");
      choose(drawSentence());
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
    choose(concord.read(replaced(shown.words, place, word)));
    list[place].word.focus();
  }

  /** `given` has the model's answers, as answeredBy; null before there are any. */
  function draw(sentence, questions, given) {
    if (sentence !== shown) {
      shown = sentence;
      const { words } = sentence;
      list = words.map((_, place) => createCard(words, place, questions[place], replace));
      cards.replaceChildren(...list.map((card) => card.node));
      if (field !== document.activeElement) field.value = words.join(" ");
      refuse("");
    }
    list.forEach((card, place) => card.draw(given?.[place] ?? null));
  }
  return { node, draw };
}
