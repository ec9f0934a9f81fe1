// The four rules that all names keep, in words.

import { NAMES } from "../engine/names_data.js";
import { element } from "../shared/dom.js";
import { inWords } from "../shared/numbers.js";

const listed = (letters) => inWords([...letters]);

function ruleTexts() {
  const [front, back] = Object.values(NAMES.vowels).map(listed);
  const fewest = Math.min(...NAMES.numbers);
  const most = Math.max(...NAMES.numbers);
  const doubling = listed(NAMES["before double"]);
  const endings = Object.entries(NAMES.endings).map(
    ([last, firsts]) => `${last} after ${listed(firsts)}`,
  );
  return {
    shape:
      `a name begins and ends with a consonant; it has ${fewest} to ${most} vowels, and between two of ` +
      "them stands one consonant, single or doubled.",
    harmony: `its vowels are all from ${front}, or all from ${back}.`,
    doubling: `between vowels, a consonant is doubled after ${doubling}, and single after the others.`,
    ending: `the first letter decides the last: ${endings.join("; ")}.`,
  };
}

/** A fold with the rules. */
export function createRules() {
  const terms = Object.entries(ruleTexts()).flatMap(([name, text]) => [
    element("dt", {}, name),
    element("dd", {}, text),
  ]);
  return element(
    "details",
    { class: "attn-rules" },
    element("summary", {}, "The four rules"),
    element("dl", {}, ...terms),
  );
}
