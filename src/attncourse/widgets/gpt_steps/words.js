// GptSteps' words: what each line does, with its live numbers.

import { element } from "../shared/dom.js";
import { plainNumber, shortNumber } from "../shared/numbers.js";

const LISTED = 6; // numbers of a list that are written out

/** "[0.31, −1.2]"; of a long list the first numbers, and how many there are. */
function sayList(numbers, write = plainNumber) {
  const shown = numbers.slice(0, LISTED).map(write).join(", ");
  const isWhole = numbers.length <= LISTED;
  return isWhole ? `[${shown}]` : `[${shown}, …] (${numbers.length} numbers)`;
}

const code = (text) => element("code", {}, text);

/** What the line that has just run has done, as nodes. */
export function sayLine(state) {
  const { token, line, head, T, V, d, h, width, hidden, walked, ids, nameOf, letterOf } = state;
  const now = walked[token];
  const letter = element("bdi", {}, nameOf(token));
  const own = (list) => list.slice(head * width, (head + 1) * width);
  const made = (name, numbers, write) => [" ", code(`${name} = ${sayList(numbers, write)}`)];
  const each = token === 0 ? "1 token" : `${token + 1} tokens`;
  const whose = `Head ${head + 1}'s`;

  function sayChances() {
    const likeliest = now.chances.indexOf(Math.max(...now.chances));
    const next = ids[token + 1];
    const chance = (id) => shortNumber(now.chances[id]);
    const first = `Softmax turns them into chances. Likeliest: ${letterOf(likeliest)}, with ${chance(likeliest)}. `;
    const ends = token === T - 1;
    const then = ends ? "The name ends here" : `The name goes on with ${letterOf(next)}`;
    return [first, `${then}, which gets ${chance(next)}.`];
  }
  function saySharpest() {
    const shares = now.weights[head];
    const most = shares.indexOf(Math.max(...shares));
    const where = element("bdi", {}, nameOf(most));
    return [
      "Softmax: shares that sum to 1. Most goes to ",
      where,
      `, ${shortNumber(shares[most])}.`,
    ];
  }
  const words = {
    cache: () => ["The cache begins empty: no token has been read."],
    token: () => [
      `Token ${token + 1} of ${T}: `,
      letter,
      ". ",
      code(`pos = ${token}, token = ${ids[token]}`),
    ],
    embed: () => [
      "The row of ",
      letter,
      ` in one table, plus row ${token} of another.`,
      ...made("x", now.embed),
    ],
    norm_1: () => ["x, normalized: its length no longer counts.", ...made("a", now.norm_1)],
    q: () => ["The query: what ", letter, " asks.", ...made("q", now.q)],
    k: () => ["The key: what ", letter, " is found by.", ...made("k", now.k)],
    v: () => ["The value: what ", letter, " hands over.", ...made("v", now.v)],
    append_k: () => [`The key joins the cache, which now has those of ${each}.`],
    append_v: () => [
      "So does the value. Now ",
      letter,
      " can look at itself, and later tokens can look at it.",
    ],
    joined: () => ["Empty: each head will append what it finds.", ...made("joined", [])],
    head: () => [`Head ${head + 1} of ${h} begins. `, code(`head = ${head}`)],
    own: () => [`${whose} numbers in each list are ${own([...Array(d).keys()]).join(", ")}.`],
    q_h: () => [`${whose} part of the query.`, ...made("q_h", own(now.q))],
    k_h: () => [`${whose} part of the keys in the cache: of ${each}, ${width} numbers each.`],
    v_h: () => [`${whose} part of the values in the cache: of ${each}, ${width} numbers each.`],
    scores: () => [`One score for each of ${each} so far.`, ...made("scores", now.scores[head])],
    weights: () => [
      ...saySharpest(),
      ...made("weights", now.weights[head], (one) => shortNumber(one)),
    ],
    mix: () => [
      `The values, mixed in these shares: ${width} numbers. joined now has ${(head + 1) * width} of ${d}. `,
      code(`joined += ${sayList(own(now.joined))}`),
    ],
    output: () => ["W_o mixes what the heads have found.", ...made("o", now.output)],
    residual_1: () => ["Added to x: what was there stays.", ...made("x", now.residual_1)],
    norm_2: () => ["x, normalized anew for the network.", ...made("m", now.norm_2)],
    hidden: () => {
      const above = now.hidden.filter((number) => number > 0).length;
      return [`${hidden} numbers, ${above} of them above 0.`, ...made("hidden", now.hidden)];
    },
    residual_2: () => [
      `W_2 turns them into ${d} numbers, which are added to x.`,
      ...made("x", now.residual_2),
    ],
    logits: () => [
      `A score for each of the ${V} tokens that may come next.`,
      ...made("logits", now.logits),
    ],
    chances: sayChances,
  };
  return words[line]();
}

/** Whether it is the moment to say that there is no mask: a token's first scores. */
export function isAtMask({ line, head }) {
  return line === "scores" && head === 0;
}

/** Why there is none, as nodes. */
export function sayMask({ token, T }) {
  const ahead = T - 1 - token;
  const others = ahead === 1 ? "the token to come has" : `the ${ahead} tokens to come have`;
  const why = ahead === 0 ? "the cache holds only what has been read" : `${others} no key yet`;
  const none = `There is none: ${why}.`;
  return [" ", element("strong", {}, `A causal mask would stand after this line. ${none}`)];
}

/** A number of a list by its name in the code, and what it is. */
export function sayCell(list, row, column, number, { d, width, nameOf, letterOf }) {
  const head = `head ${Math.floor(row / width) + 1}`;
  const inHeads = ["q", "k", "v", "joined"].includes(list);
  const [name, whose] = {
    keys: () => [`keys[${column}][${row}]`, `${nameOf(column)}, ${head}`],
    values: () => [`values[${column}][${row}]`, `${nameOf(column)}, ${head}`],
    scores: () => [`scores[${column}]`, `head ${row + 1} for ${nameOf(column)}`],
    weights: () => [`weights[${column}]`, `head ${row + 1} on ${nameOf(column)}`],
    logits: () => [`logits[${column}]`, letterOf(column)],
    chances: () => [`chances[${column}]`, letterOf(column)],
  }[list]?.() ?? [`${list}[${column * d + row}]`, inHeads ? head : ""];
  if (number === undefined) return [code(name), " isn't there yet."];
  const text = ["weights", "chances"].includes(list) ? shortNumber(number, 3) : plainNumber(number);
  return [code(`${name} = ${text}`), whose === "" ? "" : ` (${whose})`];
}
