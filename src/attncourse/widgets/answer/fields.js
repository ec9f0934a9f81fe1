// What an answer is given in: for each kind its controls, what is missing so far, and its place in
// the table of verdicts. `given` is a list, as the trait's documentation says.

import { calculated } from "../shared/calculation.js";
import { element } from "../shared/dom.js";
import { hasDoubtfulComma, inWords, isBlank } from "../shared/numbers.js";
import { createButton } from "../shared/parts.js";
import { filled } from "../shared/state.js";
import { inline, unmarked } from "../shared/text.js";
import {
  kindOfNumbers,
  placeOfMix,
  placeOfOrder,
  placeOfPick,
  waysToOrder,
  waysToPick,
} from "./places.js";
import { remark } from "./remarks.js";
import { SAID } from "./remarks_said.js";

const LONGEST = 60; // characters; longer texts are cut to one more, and refused

/** Controls below a title, where there is one. */
function createPart(title, className, ...controls) {
  const named = title ? [element("legend", {}, ...inline(title))] : [];
  return element("fieldset", { class: className }, ...named, ...controls);
}

/** A radio button or a checkbox before its text; `choose` is told whether it is on. */
function createOption(type, name, content, choose) {
  const input = element("input", { type, name });
  input.addEventListener("change", () => choose(input.checked));
  return { input, node: element("label", {}, input, ...content) };
}

/** Whether a value is the place of something in a list. */
function isPlace(value, list) {
  return Number.isInteger(value) && value >= 0 && value < list.length;
}

function createNumberField(label, type) {
  const input = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const note = element("span", { class: "attn-note" });
  const name = element("span", {}, ...inline(label));
  input.addEventListener("input", () => type(input.value.slice(0, LONGEST + 1)));

  function draw(text, words) {
    if (input.value !== text) input.value = text;
    note.textContent = words;
    if (words) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
  return { node: element("label", {}, name, input, note), draw, focus: () => input.focus() };
}

/** Why a text is no number, or nothing. */
function wordsOn(text) {
  if (isBlank(text)) return "empty";
  return text.length > LONGEST || Number.isNaN(calculated(text)) ? "not a number" : "";
}

/** What to type in place of texts that are no numbers. */
function adviceOn(texts) {
  const advice = [
    "Type a number such as 0.43 or -2e-3, or a calculation such as 3/7, 27*16 or -ln(3/7).",
  ];
  if (texts.some((text) => /[%\uff05\u066a]/.test(text))) advice.push("Write 25% as 0.25.");
  if (texts.some(hasDoubtfulComma)) advice.push("Write 4,096 as 4096 or 4.096.");
  if (texts.some((text) => text.length > LONGEST))
    advice.push(`At most ${LONGEST} characters fit.`);
  return advice.join(" ");
}

/** What fields are called in a sentence: if several have one label, by the part's title too. */
function namesOfFields({ titles, labels }) {
  const all = labels.flat();
  const isAlone = (label) => all.indexOf(label) === all.lastIndexOf(label);
  const names = labels.flatMap((own, part) =>
    own.map((label) => (isAlone(label) || !titles[part] ? label : `${label} (${titles[part]})`)),
  );
  return names.map(unmarked);
}

/** Of each group of fields what is typed, what is known, and what of it that is. */
function groupsOf(given, state) {
  const typed = given.map(calculated);
  let from = 0;
  return state.known.map((known, i) => {
    const own = typed.slice(from, from + known[0].length);
    from += own.length;
    return { title: state.titles[i], own, known, kind: kindOfNumbers(own, known, state) };
  });
}

function placeOfGroups(groups, { known, near, tolerance }) {
  return placeOfMix(
    groups.map(({ kind }) => kind),
    known.map((rows) => rows.length + 1 + (near > tolerance)),
  );
}

const numbers = {
  untouched: ({ labels }) => labels.flat().map(() => ""),
  isGiven: (given, { labels }) =>
    given.length === labels.flat().length &&
    given.every((text) => typeof text === "string" && text.length <= LONGEST + 1),
  sizeOfTable: ({ known, tolerance, near }) =>
    known.reduce((size, rows) => size * (rows.length + 1 + (near > tolerance)), 1),
  missing(given, state) {
    const names = namesOfFields(state);
    const empty = names.filter((_, i) => wordsOn(given[i]) === "empty");
    const unread = given.filter((text) => wordsOn(text) === "not a number");
    if (empty.length === names.length) return "Nothing is filled in so far.";
    if (unread.length > 0) {
      const texts = inWords([...new Set(unread)].map((text) => `\u201c${text}\u201d`));
      return `${texts} can\u2019t be read. ${adviceOn(unread)}`;
    }
    return empty.length > 0 ? `Still empty: ${inWords(empty)}.` : "";
  },
  placeOf: (given, state) => placeOfGroups(groupsOf(given, state), state),
  /** What to say before the hint on the first wrong row, if that is a hint on any wrong numbers. */
  remarkOn(given, state) {
    const groups = groupsOf(given, state);
    const isNear = ({ kind, known }) => state.near > state.tolerance && kind === known.length;
    const first = groups.findIndex((group) => group.kind !== 0 && !isNear(group));
    if (first === -1) return "";
    const { title, own, known } = groups[first];
    const others = groups.toSpliced(first, 1);
    const unknown = { ...groups[first], kind: known.length + (state.near > state.tolerance) };
    const places = [groups, groups.with(first, unknown)].map((mix) => placeOfGroups(mix, state));
    if (state.table[places[0]] !== state.table[places[1]]) return "";
    const rows = others.map((group) => ({ title: group.title, row: [...group.known[0]] }));
    const said = remark(own, [...known[0]], rows);
    const isNamed = said && title && own.length > 1; // of one number the hint says which it is
    return isNamed ? filled(SAID.named, { title, remark: said }) : said;
  },
  create({ titles, labels }, { given, change }) {
    const fields = [];
    const nodes = labels.map((names, part) => {
      const own = names.map((name) => {
        const i = fields.length;
        const type = (text) => change(given().with(i, text));
        fields.push(createNumberField(name, type));
        return fields[i].node;
      });
      return createPart(titles[part], "attn-fields", ...own);
    });
    function draw(texts, checked) {
      fields.forEach((field, i) => field.draw(texts[i], checked ? wordsOn(texts[i]) : ""));
    }
    const focus = () => fields[Math.max(0, given().findIndex(wordsOn))].focus();
    return { nodes, draw, focus };
  },
};

const choice = {
  untouched: ({ labels }) => labels.map(() => null),
  isGiven: (given, { labels }) =>
    given.length === labels.length &&
    given.every((picked, i) => picked === null || isPlace(picked, labels[i])),
  sizeOfTable: ({ labels }) => labels.reduce((size, names) => size * names.length, 1),
  missing(given, { titles }) {
    const open = titles.map(unmarked).filter((_, i) => given[i] === null);
    if (open.length === 0) return "";
    return titles.length === 1 ? "Pick an answer first." : `Still to pick: ${inWords(open)}.`;
  },
  placeOf: (given, { labels }) =>
    placeOfMix(
      given,
      labels.map((names) => names.length),
    ),
  create({ titles, labels }, { given, change }) {
    const parts = labels.map((names, part) =>
      names.map((name, i) => {
        const text = element("span", {}, ...inline(name));
        return createOption("radio", `part-${part}`, [text], () => change(given().with(part, i)));
      }),
    );
    const nodes = parts.map((options, part) => {
      const areShort = labels[part].every((name) => name.length <= 16);
      const className = areShort ? "attn-answers attn-side-by-side" : "attn-answers";
      return createPart(titles[part], className, ...options.map(({ node }) => node));
    });
    function draw(picked) {
      parts.forEach((options, part) =>
        options.forEach(({ input }, i) => {
          input.checked = i === picked[part];
        }),
      );
    }
    const focus = () => parts[Math.max(0, given().indexOf(null))][0].input.focus();
    return { nodes, draw, focus };
  },
};

const lines = {
  untouched: () => [],
  isGiven: (given, { labels: [listing] }) =>
    given.every((line, i) => isPlace(line, listing) && !(given[i - 1] >= line)),
  sizeOfTable: ({ labels: [listing], pick }) => waysToPick(pick, listing.length),
  missing(given, { pick }) {
    if (given.length === pick) return "";
    if (given.length === 0) return pick === 1 ? "Pick a line first." : `Pick ${pick} lines first.`;
    return `Pick ${pick} lines; so far there ${given.length === 1 ? "is" : "are"} ${given.length}.`;
  },
  placeOf: (given, { labels: [listing] }) => placeOfPick(given, listing.length),
  create({ titles, labels: [listing], pick }, { given, change }) {
    const options = listing.map((line, i) => {
      const content = [
        element("span", { class: "attn-number" }, String(i + 1)),
        element("code", { style: `--indent: ${line.search(/\S/)}ch` }, line),
      ];
      return createOption(pick === 1 ? "radio" : "checkbox", "line", content, (isOn) => {
        const others = pick === 1 ? [] : given().filter((other) => other !== i);
        change(isOn ? [...others, i].sort((a, b) => a - b) : others);
      });
    });
    const box = element("div", { class: "attn-scroll" }, ...options.map(({ node }) => node));
    function draw(picked) {
      options.forEach(({ input }, i) => {
        input.checked = picked.includes(i);
      });
    }
    return {
      nodes: [createPart(titles[0], "attn-listing", box)],
      draw,
      focus: () => options[0].input.focus(),
    };
  },
};

const order = {
  untouched: ({ labels: [steps] }) => steps.map((_, i) => i),
  isGiven: (given, { labels: [steps] }) =>
    given.length === steps.length && steps.every((_, i) => given.includes(i)),
  sizeOfTable: ({ labels: [steps] }) => waysToOrder(steps.length),
  missing: () => "",
  placeOf: placeOfOrder,
  create({ titles, labels: [steps] }, { given, change }) {
    const items = steps.map((step, i) => {
      const move = (way) => {
        const from = given().indexOf(i);
        const to = from + way;
        if (to < 0 || to >= steps.length) return;
        const moved = given().filter((other) => other !== i);
        moved.splice(to, 0, i);
        change(moved, `${step}: now ${to + 1} of ${steps.length}.`);
        buttons[way < 0 ? 0 : 1].focus(); // it moved with its step, and lost the focus
      };
      const buttons = [
        createButton("\u2191", () => move(-1)),
        createButton("\u2193", () => move(1)),
      ];
      buttons[0].setAttribute("aria-label", `Move up: ${step}`);
      buttons[1].setAttribute("aria-label", `Move down: ${step}`);
      const text = element("span", {}, ...inline(step));
      return { node: element("li", {}, text, ...buttons), buttons };
    });
    const list = element("ol");
    function draw(places) {
      list.replaceChildren(...places.map((i) => items[i].node));
      places.forEach((i, place) => {
        items[i].buttons[0].setAttribute("aria-disabled", String(place === 0));
        items[i].buttons[1].setAttribute("aria-disabled", String(place === steps.length - 1));
      });
    }
    return {
      nodes: [createPart(titles[0], "attn-steps", list)],
      draw,
      focus: () => items[given()[0]].buttons[0].focus(),
    };
  },
};

export const KINDS = { numbers, choice, lines, order };
