// What HeadLab says: what a model has learned, what muting does.

import { headsInWords, nameOfHead, nameOfRun } from "../lab/words.js";
import { inWords, many, shortNumber } from "../shared/numbers.js";
import { bestHeads, hasLearned, LEARNED, nameOf, partOf } from "./findings.js";

const MOST_NAMED = 2; // relations: a line that grew would move what stands below it
const CHANGES = 0.1; // of a weight: more than that is told as a change

/** What a model has learned, and what not. */
export function sayLearned(run) {
  const shares = run.setting.rows.map(({ name, share }) => [name, share(run.evaluation)]);
  const verb = { stopped: "Stopped", given: "Asked" }[run.state] ?? "Trained";
  const named = (some) => some.map(([name, share]) => `${nameOf(name)} (${shortNumber(share)})`);
  const begin = `${verb} with ${nameOfRun(run)}:`;
  if (shares.length === 1) return `${begin} ${shortNumber(shares[0][1])} of its answers are right.`;
  if (run.setting.chosen) return `${begin} right on ${inWords(named(shares))}.`;
  const missed = shares.filter(([, share]) => share < LEARNED);
  if (missed.length === 0) return `${begin} at least 9 of 10 answers are right in each relation.`;
  const isShort = missed.length <= MOST_NAMED;
  const which = isShort ? inWords(named(missed)) : `${missed.length} of ${shares.length} relations`;
  return `${begin} it hasn't learned ${which}.`;
}

/** What the smallest form says of a model that has been trained: which of its two answers it knows. */
export function sayVerb({ numHeads, evaluation }) {
  const [subject, object] = ["verb>subject", "verb>object"].map((name) =>
    hasLearned(evaluation, name),
  );
  const who = headsInWords(numHeads);
  const verb = numHeads === 1 ? "has" : "have";
  if (!subject && !object) return `${who} ${verb} learned neither answer.`;
  if (subject && object) return `${who} ${verb} learned both answers.`;
  const [one, other] = subject ? ["subject", "object"] : ["object", "subject"];
  return `${who} ${verb} learned the ${one}, not the ${other}.`;
}

/** Whether one head or two find what one word needs; `evaluation` may be null. */
export function saySharing(evaluation, { pairs }) {
  const bests = bestHeads(evaluation?.mass ?? {});
  return pairs.map(([a, b]) => {
    const [word] = a.includes(">") ? a.split(">") : ["each symbol"];
    const text = `${word}: ${partOf(a)} and ${partOf(b)}`;
    if (!(a in bests && b in bests)) return { text, whose: "–", isShared: false };
    const [one, other] = [bests[a].head + 1, bests[b].head + 1];
    const missed = [a, b].filter((name) => !hasLearned(evaluation, name)).map(partOf);
    const isShared = missed.length === 0 && one === other;
    const found = isShared ? `head ${one} for both` : `heads ${one} and ${other}`;
    const missing = missed.length === 2 ? "neither learned" : `${missed[0]} not learned`;
    return { text, whose: missed.length > 0 ? missing : found, isShared };
  });
}

/** Between which weights a head is on each of its partners when only the values change. */
export function saySpread(spread, { relations }) {
  const range = ({ low, high }) => `${shortNumber(low)} to ${shortNumber(high)}`;
  return inWords(relations.map(({ name }, i) => `${range(spread[i])} on ${partOf(name)}`));
}

/** What a model with one head and two needs shows; `spread` is that of its head. */
export function sayOneHead({ setting, evaluation, state, steps }, spread) {
  const both = setting.rows.at(-1).share(evaluation);
  const isFound = both >= LEARNED;
  const verdict = isFound ? "One head answers both" : "One head doesn't answer both";
  const early = state === "stopped" ? ` after ${many(steps, "step")}` : "";
  const width = Math.max(...spread.map(({ low, high }) => high - low));
  const row = `Its row ${width >= CHANGES ? "changes" : "hardly changes"} with the values`;
  const way = isFound && setting.chosen.mlp ? " An MLP follows it." : "";
  return `${verdict}${early}: ${shortNumber(both)} of the questions have both right.${way} ${row}: its weight is ${saySpread(spread, setting.task)} in nine of ten tries with other values.`;
}

/** How often the answers are right that need a look, of a `row` as in tasks.js, once it is forbidden. */
export function sayForbidden(row, before, now) {
  const shares = row && now ? [before, now].map(row.share) : [undefined];
  if (shares.includes(undefined)) {
    return "A word then can't look at what it must find: are its answers still right?";
  }
  const [trained, changed] = shares.map((share) => shortNumber(share));
  return `Right in ${nameOf(row.name)}, in new examples: ${trained} as trained, ${changed} now.`;
}

/** All heads in which a look can be forbidden: those of the last layer. */
export function sayAllHeads({ setting }) {
  const layers = setting.spec.blocks.length;
  return layers === 1 ? "all heads" : `all heads of layer ${layers}`;
}

/** What the model answers about the sentence, and what is changed of it: muted, or forbidden. */
export function sayAnswers(questions, given, state) {
  const { muted, forbidden } = state;
  const all = questions.flatMap((own, word) => own.map(({ right }, i) => given[word][i] === right));
  const wrong = all.filter((isRight) => !isRight).length;
  const heads = inWords(muted.map((head) => nameOfHead(head, state)));
  const head = forbidden?.head ?? null;
  const where = head === null ? sayAllHeads(state) : `head ${nameOfHead(head, state)}`;
  const changes = [
    muted.length > 0 ? `Muted: ${muted.length > 1 ? "heads" : "head"} ${heads}` : "",
    forbidden ? `Forbidden: ${nameOf(forbidden.relation)} in ${where}` : "",
  ];
  const who = changes.filter(Boolean).join(". ") || "No head is muted";
  const areWrong = wrong > 1 ? `${wrong} are` : `${wrong || "none"} is`;
  return `${who}: of ${all.length} answers above, ${areWrong} wrong.`;
}
