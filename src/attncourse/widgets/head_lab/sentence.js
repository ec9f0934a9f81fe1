// HeadLab's sentence: its words, the questions about each, and the model's answers.

import { concord } from "../engine/language.js";
import { createArcs } from "../shared/arcs.js";
import { element, write } from "../shared/dom.js";
import { createButton, createForm } from "../shared/parts.js";
import { answersOf, partOf } from "./findings.js";

const DRAWN = 200; // sentences; one of them is shown

/**
 * The questions about each word of a task's sentence: lists of {readout, relation, what, right};
 * `right` is an answer's place. Where answers are `foretold`, words without a partner are asked nothing:
 * nobody could know.
 */
export function questionsOf(
  { words, answers, partners },
  { readouts, relations },
  { foretold = false } = {},
) {
  return words.map((_, word) =>
    Object.keys(readouts).flatMap((readout) => {
      const right = answers[readout][word];
      if (right === null) return [];
      const found = relations.find(
        ({ name, readout: own }) => own === readout && word in partners[name],
      );
      // Only an adjective without an adverb is asked for a partner that isn't there.
      const relation = found?.name ?? null;
      if (foretold) return relation ? [{ readout, relation, what: readout, right }] : [];
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

/**
 * A line for each question of a word, with what is answered. A wrong answer has the right one beside
 * it, as what it `must` be.
 */
export function createSlots(questions, readouts, must = " ") {
  const slots = questions.map(({ what }) => {
    const answer = element("span", { class: "attn-given" });
    const mark = element("span", { class: "attn-mark" });
    const node = element("span", { class: "attn-slot" }, `${what}: `, answer, mark);
    return { node, answer, mark };
  });

  /** `asked` are questions of the same form; `given` is null before there are answers. */
  function draw(asked, given) {
    slots.forEach(({ node, answer, mark }, i) => {
      const { readout, right } = asked[i];
      const texts = readouts[readout];
      const isWrong = given !== null && given[i] !== right;
      node.classList.toggle("attn-wrong", isWrong);
      write(answer, texts[given === null ? right : given[i]]);
      write(mark, given === null ? " (wanted)" : isWrong ? ` ✗${must}${texts[right]}` : " ✓");
    });
  }
  return { nodes: slots.map(({ node }) => node), draw };
}

/** What a card's field and slots are made of: a card serves other words of the same form. */
function formOf(others, questions) {
  return [...others, ...questions.map(({ what }) => what)].join();
}

/** A word with what it answers; `others` may be chosen in its place, if there are several. */
function createCard(place, others, questions, readouts, { choose, look }) {
  const isFixed = others.length <= 1;
  const field = isFixed
    ? element("span", { class: "attn-word" })
    : element(
        "select",
        { "aria-label": `Word ${place + 1}` },
        ...others.map((text) => element("option", {}, text)),
      );
  field.addEventListener("change", () => choose(place, field.value));
  const slots = createSlots(questions, readouts);
  const answers = element("span", {}, ...slots.nodes);
  const node = element("div", { class: "attn-card" }, field, answers);
  for (const kind of ["pointerdown", "focusin"]) node.addEventListener(kind, () => look(place));

  /** `asked` are the word's questions, of the card's form; `given` is null before there are answers. */
  function draw(word, asked, given) {
    if (isFixed) write(field, word);
    else if (field.value !== word) field.value = word;
    slots.draw(asked, given);
  }
  return { node, field, draw, form: formOf(others, questions) };
}

/**
 * A sentence that a reader changes word by word, types (of Concord) or has drawn with `rng`:
 * `choose(sentence)` is told a new one; `wanted()` is the newest, perhaps not drawn yet. `cards` are the
 * words with answers and arcs, from the one chosen by `look(place)`; `another` is how to get others.
 */
export function createSentence(setting, rng, { choose, wanted, look }) {
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
      choose(drawAlike());
    }),
  );
  form.className = "attn-row";
  const list = element("div", { class: "attn-cards" });
  const arcs = createArcs(list);
  const cards = element("div", { class: "attn-arcs attn-long" }, arcs.node, list);
  const another = element("div", { class: "attn-another" }, form, refusal);
  let shown = null;
  let all = []; // the cards

  /** Another sentence about as high: what stands below it hardly moves. */
  function drawAlike() {
    const sizesOf = (sentence) => {
      const asked = questionsOf(sentence, task, setting).map((own) => own.length);
      return [asked.length, asked.filter((count) => count > 1).length]; // words, and with two answers
    };
    const [words, pairs] = sizesOf(wanted());
    const others = Array.from({ length: DRAWN }, () => task.draw(rng));
    const changes = others.map((other) => {
      const [w, p] = sizesOf(other);
      return Math.max(Math.abs(w - words), Math.abs(w + p - words - pairs));
    });
    const most = Math.max(1, Math.min(...changes));
    return others[changes.findIndex((change) => change <= most)];
  }

  function refuse(message) {
    refusal.textContent = message.replace(/^text is not/, "Not").replace(/^text must/, "This must");
    field.setAttribute("aria-invalid", String(message !== ""));
  }

  function replace(place, word) {
    all[place].field.focus();
    const newest = wanted();
    const fits = setting.alternatives(newest, place).includes(word);
    choose(setting.changed(fits ? newest : shown, place, word));
  }

  /** `given` has the model's answers, as answeredBy; null before there are any. */
  function draw(sentence, questions, given) {
    if (sentence !== shown) {
      shown = sentence;
      const { words } = sentence;
      const before = all;
      const root = list.getRootNode();
      const inHand = before.findIndex(({ field }) => field === root.activeElement);
      all = words.map((_, place) => {
        const others = setting.alternatives(sentence, place);
        const asked = questions[place];
        if (before[place]?.form === formOf(others, asked)) return before[place]; // fields are dear
        return createCard(place, others, asked, task.readouts, { choose: replace, look });
      });
      const nodes = all.map((card) => card.node);
      if (all.length !== before.length) list.replaceChildren(...nodes);
      else {
        nodes.forEach((node, place) => {
          if (node !== before[place].node) before[place].node.replaceWith(node);
        });
      }
      arcs.show(nodes);
      if (inHand >= 0) all[inHand]?.field.focus();
      if (field !== document.activeElement) field.value = words.join(" ");
      refuse("");
    }
    all.forEach((card, place) => {
      card.draw(sentence.words[place], questions[place], given?.[place] ?? null);
    });
  }
  function drawArcs(words, from, ...looks) {
    all.forEach(({ node }, place) => node.classList.toggle("attn-query", place === from));
    arcs.drawRows(words, from, ...looks);
  }
  return { cards, another, drawArcs, draw };
}
