// GptSteps' lines: their order, and what each reads and makes.

/** What each line of the code does, in their order; see code.py. */
export const LINES = [
  ...["cache", "token", "embed", "norm_1", "q", "k", "v", "append_k", "append_v", "joined"],
  ...["head", "own", "q_h", "k_h", "v_h", "scores", "weights", "mix"],
  ...["output", "residual_1", "norm_2", "hidden", "residual_2", "logits", "chances"],
];
const place = Object.fromEntries(LINES.map((line, i) => [line, i]));
const [FIRST_OF_HEAD, LAST_OF_HEAD] = [place.head, place.mix];

/** Whether a line stands in the loop over heads. */
export function isOfHead(line) {
  return place[line] >= FIRST_OF_HEAD && place[line] <= LAST_OF_HEAD;
}

/** Whether a line has run, where `now` has run last. */
export function hasRun(line, { line: now }) {
  return place[now] >= place[line];
}

/** Whether a line of the loop over heads has run for a head. */
export function hasRunFor(head, line, now) {
  if (place[now.line] > LAST_OF_HEAD) return true;
  if (!isOfHead(now.line) || head > now.head) return false;
  return head < now.head || hasRun(line, now);
}

export function isFirst({ token, line }) {
  return token === 0 && line === LINES[0];
}

export function isLast({ token, line }, T) {
  return token === T - 1 && line === LINES.at(-1);
}

/** Where the loop is after one more line. */
export function after(now, { T, h }) {
  const { token, line, head } = now;
  if (isLast(now, T)) return now;
  if (line === LINES.at(-1)) return { token: token + 1, line: "token", head };
  if (place[line] === LAST_OF_HEAD && head < h - 1) return { token, line: "head", head: head + 1 };
  const next = LINES[place[line] + 1];
  return { token, line: next, head: next === "head" ? 0 : head };
}

/** Where it was one line before. */
export function before(now, { h }) {
  const { token, line, head } = now;
  if (isFirst(now)) return now;
  if (line === "token" && token > 0) return { token: token - 1, line: LINES.at(-1), head };
  if (line === "head" && head > 0) return { token, line: "mix", head: head - 1 };
  const previous = LINES[place[line] - 1];
  return { token, line: previous, head: previous === "mix" ? h - 1 : head };
}

/** Where the next token is read; at the last one where all is done. */
export function afterToken({ token, head }, T) {
  if (token < T - 1) return { token: token + 1, line: "token", head };
  return { token, line: LINES.at(-1), head };
}

const whole = (list) => ({ list });

/**
 * What the line that has just run reads and makes: {reads, makes}, each of places in lists, {list}
 * with the first and the number of `rows` and `columns` where it isn't all of them.
 */
export function marksOf({ token, line, head }, { width }) {
  const own = { rows: [head * width, width] };
  const soFar = { columns: [0, token + 1] };
  const column = { columns: [token, 1] };
  const scores = { list: "scores", rows: [head, 1], ...soFar };
  const weights = { list: "weights", rows: [head, 1], ...soFar };
  const marks = {
    cache: [[], [whole("keys"), whole("values")]],
    token: [[], []],
    embed: [[], [whole("x")]],
    norm_1: [[whole("x")], [whole("a")]],
    q: [[whole("a")], [whole("q")]],
    k: [[whole("a")], [whole("k")]],
    v: [[whole("a")], [whole("v")]],
    append_k: [[whole("k")], [{ list: "keys", ...column }]],
    append_v: [[whole("v")], [{ list: "values", ...column }]],
    joined: [[], [whole("joined")]],
    head: [[], []],
    own: [[], []],
    q_h: [[], [{ list: "q", ...own }]],
    k_h: [[], [{ list: "keys", ...own, ...soFar }]],
    v_h: [[], [{ list: "values", ...own, ...soFar }]],
    scores: [
      [
        { list: "q", ...own },
        { list: "keys", ...own, ...soFar },
      ],
      [scores],
    ],
    weights: [[scores], [weights]],
    mix: [[weights, { list: "values", ...own, ...soFar }], [{ list: "joined", ...own }]],
    output: [[whole("joined")], [whole("o")]],
    residual_1: [[whole("o")], [whole("x")]],
    norm_2: [[whole("x")], [whole("m")]],
    hidden: [[whole("m")], [whole("hidden")]],
    residual_2: [[whole("hidden")], [whole("x")]],
    logits: [[whole("x")], [whole("logits")]],
    chances: [[whole("logits")], [whole("chances")]],
  };
  const [reads, makes] = marks[line];
  return { reads, makes };
}
