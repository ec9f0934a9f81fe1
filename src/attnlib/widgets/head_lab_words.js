// What HeadLab says: how a training stands, what a model has learned, what muting does.

import { headsInWords } from "./head_lab_curve.js";
import { bestHeads, LEARNED, nameOf, needsOfOneWord } from "./head_lab_findings.js";
import { inWords, shortNumber } from "./shared/numbers.js";

/** How a training stands, for eyes that follow it. */
export function sayProgress(run, steps) {
  if (run === null) return "Not trained yet.";
  const at = `step ${run.steps} of ${steps}`;
  const loss = run.losses.length > 0 ? `, loss ${run.losses.at(-1).toFixed(2)}` : "";
  const words = { training: "Training", paused: "Paused", stopped: "Stopped", failed: "Ended" };
  if (run.state !== "done") return `${words[run.state]}: ${at}${loss}.`;
  return `Trained: ${steps} steps in ${run.seconds.toFixed(1)} seconds${loss}.`;
}

/** What a model has learned, and what not. */
export function sayLearned(run) {
  const who = `${headsInWords(run.numHeads)}, seed ${run.seed}`;
  const shares = Object.entries(run.evaluation.relations);
  const missed = shares.filter(([, share]) => share < LEARNED);
  const verb = run.state === "stopped" ? "Stopped" : "Trained";
  if (missed.length === 0)
    return `${verb} with ${who}: at least 9 of 10 answers are right in each relation.`;
  const names = missed.map(([name, share]) => `${nameOf(name)} (${shortNumber(share)})`);
  const rest = missed.length < shares.length ? " The others are right at least 9 times of 10." : "";
  return `${verb} with ${who}: not learned are ${inWords(names)}.${rest}`;
}

/** Whether two things that one word needs are found by one head or by two. */
export function saySharing(mass, relations) {
  const bests = bestHeads(mass);
  const pairs = needsOfOneWord(relations).filter((pair) => pair.every((name) => name in bests));
  return pairs.map(([a, b]) => {
    const [one, other] = [bests[a].head + 1, bests[b].head + 1];
    const [word, first] = a.split(">");
    const [, second] = b.split(">");
    const whose = one === other ? `head ${one} for both` : `heads ${one} and ${other}`;
    return { text: `${word}: ${first} and ${second}`, whose, isShared: one === other };
  });
}

/** What the model answers about the sentence, and what muting some heads changes. */
export function sayAnswers(questions, given, muted) {
  const all = questions.flatMap((own, word) => own.map(({ right }, i) => given[word][i] === right));
  const wrong = all.filter((isRight) => !isRight).length;
  const heads = inWords(muted.map((head) => String(head + 1)));
  const who =
    muted.length === 0
      ? "All heads work"
      : `Muted: ${muted.length > 1 ? "heads" : "head"} ${heads}`;
  return `${who}: of ${all.length} answers about this sentence ${wrong === 0 ? "none is" : wrong === 1 ? "1 is" : `${wrong} are`} wrong.`;
}
