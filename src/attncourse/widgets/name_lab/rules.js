// The four rules that all names keep, in words.

import { NAMES } from "../engine/names_data.js";
import { element } from "../shared/dom.js";
import { inWords } from "../shared/numbers.js";

const listed = (letters) => inWords([...letters]);

function told() {
  const [front, back] = Object.values(NAMES.vowels).map(listed);
  const fewest = Math.min(...NAMES.numbers);
  const most = Math.max(...NAMES.numbers);
  const doubling = listed(NAMES["before double"]);
  const endings = Object.entries(NAMES.endings).map(
    ([last, firsts]) => `${last} behind ${listed(firsts)}`,
  );
  return {
    shape:
      `a name begins and ends with a consonant; ${fewest} to ${most} vowels stand alone, and between ` +
      "two of them stands a consonant, once or twice.",
    harmony: `all its vowels are of ${front}, or all are of ${back}.`,
    doubling: `between vowels a consonant is double behind ${doubling}, and single behind others.`,
    ending: `the first letter fixes the last: ${endings.join("; ")}.`,
  };
}

/** A fold with the rules. */
export function createRules() {
  const terms = Object.entries(told()).flatMap(([name, text]) => [
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
