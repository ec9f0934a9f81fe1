// HeadLab's view of the models of one setting: what one of them gets right, what it answers, where its
// heads look, and another one beside it.

import { sfc32 } from "../engine/rng.js";
import { heldOutOf } from "../engine/streams.js";
import { digestNotes } from "../lab/digest.js";
import { createAsker, optionsOf } from "../lab/runs.js";
import { headsInWords, nameOfHead, namesOfHeads } from "../lab/words.js";
import { MOST_ARCS } from "../shared/arcs.js";
import { element } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import { createHeading, createLegend, createNote, createWeightsLegend } from "../shared/parts.js";
import { createFold, createTable } from "../shared/tables.js";
import { createLossCurves } from "./curve.js";
import { nameOf, partOf, specialty, spreadOf } from "./findings.js";
import { createFolded } from "./folded.js";
import { createForbidding } from "./forbid.js";
import { createKept } from "./kept.js";
import { createLargeMap, createSwitches, createTiles, mapsOf, truthOf } from "./maps.js";
import { createRepeat } from "./repeat.js";
import { createScores } from "./scores.js";
import { answeredBy, createSentence, questionsOf } from "./sentence.js";
import { sayAnswers, sayLearned, sayOneHead, saySharing, saySpread } from "./words.js";

const SEEDS = 5; // with which each number of heads is repeated
const TRIES = 100; // other contents of a question
const SOON = 50; // milliseconds in which a model answers that isn't training

/** A function that draws only what it hasn't drawn last. */
function onChange(draw) {
  let last = null;
  return (...shown) => {
    if (last?.length === shown.length && shown.every((value, i) => value === last[i])) return;
    last = shown;
    draw(...shown);
  };
}

/** What a reader has changed of a trained model, to be held against another change; "" for nothing. */
function nameOfChange({ muted, forbidden }) {
  return muted.length > 0 || forbidden ? JSON.stringify([muted, forbidden]) : "";
}

/** A model by what tells it from others of its setting. */
function inShort({ numHeads, seed }) {
  return `${headsInWords(numHeads)}, seed ${seed}`;
}

/** Ask a run something; null if it is gone before it has answered, which it tells by itself. */
async function askRun(run, question, about) {
  try {
    return await run.training.ask(question, about);
  } catch {
    return null;
  }
}

/**
 * The view of a setting: its `node`, its `sentence`, which stands below the controls, and
 *
 *   draw(state)      show what is chosen
 *   drawRun()        show how far the models are
 *   hear(run)        do so, and ask the run again
 *
 * `hand` is what a reader changes things with: set(name, value), choose(sentence) and forgetHeads(),
 * before another model is shown; `run()` is the run that is shown, or null; `live` takes what is said
 * of it.
 */
export function createView(setting, { counts, heldOut, runs, run, live, hand }) {
  const { task } = setting;
  const { relations } = task;
  const { set } = hand;
  let state = null; // as widget.js has it
  let answer = null; // the last one of the model that is shown
  let answerBeside = null; // of the one beside it
  let ofRest = null; // {run, evaluation} without the muted heads and the forbidden look
  let spread = null; // {run, sentence, heads}: how its weights change with the values alone
  let largeMap = null;
  let drawing = null; // what draws a change whose answer is late
  let asker = null; // the word with arcs, once a reader has chosen one
  let fixedDistances = null; // what is got without looking at words, in each relation

  const scores = createScores(setting);
  const scoresBeside = createScores(setting);
  const curves = createLossCurves(setting.recipe.steps, setting.lowest);
  const rng = sfc32(Math.floor(2 ** 32 * Math.random()));
  const sentence = createSentence(setting, rng, {
    choose: hand.choose,
    wanted: () => state.sentence,
    look: drawArcs,
  });
  const tiles = createTiles({
    choose(head) {
      set("head", head);
      enlarged.open();
    },
  });
  const tilesBeside = createTiles({
    name: "All heads of the model beside",
    choose(head) {
      const { beside, numHeads, seed } = state;
      choose(...beside);
      set("beside", [numHeads, seed]);
      set("head", head);
    },
  });
  const switches = createSwitches({
    mute(head, isMuted) {
      const others = state.muted.filter((other) => other !== head);
      set("muted", isMuted ? [...others, head].sort((a, b) => a - b) : others);
    },
  });
  const mapHeading = createHeading();
  const mapPlace = element("div", { class: "attn-map-place" });
  const reading = createNote();
  reading.classList.add("attn-read");
  const spreadText = createNote();
  spreadText.classList.add("attn-spread");
  spreadText.hidden = task.withOtherValues === undefined;
  const large = element("div", { class: "attn-large" }, mapHeading, mapPlace, reading, spreadText);
  const sharing = element("div", { class: "attn-sharing" });
  const ofShown = createHeading();
  const ofBeside = createHeading();
  const forbidding = createForbidding(setting, set);
  const shownHeads = element("div", {}, ofShown, tiles.node);
  const headsBeside = element("div", {}, ofBeside, tilesBeside.node);
  const first = element("div", { class: "attn-first" }, scores.node, curves.node);
  const wanted = setting.partner ?? "the word that must be found";
  const sentencePanel = element(
    "div",
    {},
    createHeading(setting.heading),
    sentence.cards,
    createLegend(["attn-arc-key", wanted]),
  );
  const enlarged = createFolded(
    "One head, enlarged",
    large,
    createWeightsLegend(
      ["attn-frame-key", wanted],
      ["attn-barred", "blank: forbidden"],
      ...(setting.faint ? [["attn-faint-key", setting.faint]] : []),
    ),
  );
  const changing = createFolded(
    "Mute heads, forbid a look",
    createNote("Untick a head to mute it."),
    switches.node,
    forbidding.node,
  );
  changing.node.classList.add("attn-changing");
  const looks = element(
    "div",
    { class: "attn-of-heads" },
    createHeading("Where each head looks"),
    shownHeads,
    enlarged.node,
  );
  const kept = createKept(setting, {
    choose(chosen) {
      for (const [name, value] of Object.entries(chosen.setting.chosen ?? {})) set(name, value);
      choose(chosen.numHeads, chosen.seed);
      if (setting.given) set("from_weights", chosen.isGiven);
      if (chosen.isAsleep) set("trained", true);
    },
    keep: (chosen) => set("beside", chosen === null ? [] : [chosen.numHeads, chosen.seed]),
  });
  const repeat = createRepeat(setting, counts, SEEDS, {
    start: () => runs.repeat(setting, counts, SEEDS),
    stop: () => runs.stopRepeating(setting),
  });
  const numbers = createFold(makeTables, () => digestNotes(run()));
  const folded = [
    [`What is asked. ${setting.another}`, createNote(setting.asked), sentence.another],
    [kept.title, kept.node],
    [repeat.title, repeat.node],
  ].map((parts) => createFolded(...parts).node);
  const node = element(
    "div",
    { class: "attn-view" },
    looks,
    changing.node,
    first,
    sharing,
    element("div", { class: "attn-rest" }, ...folded, numbers.node),
  );

  function choose(numHeads, seed) {
    hand.forgetHeads(numHeads);
    set("num_heads", numHeads);
    set("seed", seed);
  }

  /** The run that stays beside the one that is shown, or null. */
  function runBeside() {
    const { beside } = state;
    const found = beside.length > 0 ? runs.find(setting, ...beside) : null;
    return found && found !== run() ? found : null;
  }

  /** Sentences are drawn only once there is something to be held against them. */
  function baselines() {
    fixedDistances ??= setting.baselines(heldOutOf(task, heldOut), relations);
    return fixedDistances;
  }

  /** What each head of a run is best at; nothing before it has been evaluated. */
  function specialtiesOf(one) {
    const mass = one?.evaluation?.mass;
    return mass && namesOfHeads(one).map((_, head) => specialty(head, mass, baselines()));
  }

  function makeTables() {
    const evaluation = run()?.evaluation ?? null;
    const titles = namesOfHeads(state).map((name) => `head ${name}`);
    const learned = evaluation === null ? [] : ["right answers", ...titles];
    const signed = (offset) => ` (${offset > 0 ? "+" : "−"}${Math.abs(offset)})`;
    const rows = setting.rows.map(({ name, chance: guessing, share: right }) => {
      const { share, offset } = baselines()[name] ?? {};
      const distance = share === undefined ? "–" : shortNumber(share, 3);
      const masses = evaluation?.mass[name]?.flat() ?? [];
      const found = evaluation === null ? [] : [right(evaluation), ...masses];
      const cells = found.map((number) => (number === undefined ? "–" : shortNumber(number, 3)));
      const behind = offset === undefined ? "" : signed(offset);
      return [nameOf(name), shortNumber(guessing), distance + behind, ...cells];
    });
    const caption = "Right answers, and each head's weight on the true partner";
    const columns = ["relation", "guessing", setting.baselineName, ...learned];
    return [createTable(caption, columns, rows)];
  }

  const ask = createAsker((found) => {
    if (found.run !== run() || found.sentence !== state.sentence) return;
    answer = found;
    drawAnswer();
  });
  const askBeside = createAsker((found) => {
    if (found.run !== runBeside() || found.sentence !== state.sentence) return;
    answerBeside = found;
    drawBeside();
  });

  const canBeAsked = (one) => one !== null && one.state !== "failed" && !one.isAsleep;

  /** Have the models asked about the sentence, as far as there are some. */
  function look() {
    if (canBeAsked(run())) ask(run(), state.sentence, state);
    if (canBeAsked(runBeside())) askBeside(runBeside(), state.sentence);
  }

  /** Have the model evaluated without its muted heads and the forbidden look. */
  async function evaluateRest() {
    const [asked, change] = [run(), nameOfChange(state)];
    ofRest = null;
    if (!runs.isReady(asked) || change === "") return;
    const evaluation = await askRun(asked, "evaluation", optionsOf(asked, state));
    if (evaluation === null || asked !== run() || change !== nameOfChange(state)) return;
    ofRest = { run: asked, evaluation };
    drawRun();
  }

  /** Have a model with two needs asked about the same places with other contents. */
  async function vary() {
    const [asked, about] = [run(), state.sentence];
    if (task.withOtherValues === undefined || !runs.isReady(asked)) return;
    if (spread?.run === asked && spread.sentence === about) return;
    spread = { run: asked, sentence: about, heads: null };
    const other = sfc32(0);
    const sentences = Array.from({ length: TRIES }, () => task.withOtherValues(about, other));
    const found = await askRun(asked, "answers", { sentences });
    if (found === null || spread.run !== asked || spread.sentence !== about) return;
    const maps = found.map(({ weights: [weights] }) => weights);
    const row = about.words.length - 1; // in both tasks it is asked for both
    const columns = relations.map(({ name }) => about.partners[name][row]);
    spread.heads = spreadOf(maps, about.words.length, row, columns);
    drawSpread();
    drawSharing();
  }

  function drawSpread() {
    const isKnown = spread?.run === run() && spread.sentence === state.sentence;
    const own = isKnown && state.numHeads > 1 && spread.heads?.[state.head]; // one head is told of above
    spreadText.textContent = "";
    if (!own) return;
    const who = `row of ${state.sentence.words.at(-1)}`;
    const range = saySpread(own, task);
    spreadText.textContent = `In ${TRIES} tries with other values its weight in the ${who} is ${range}, nine times out of ten.`;
  }

  /** Draw a change with its answer: to draw twice would take a browser twice as long. */
  function drawSoon() {
    drawing ??= setTimeout(() => {
      drawing = null;
      if (!node.isConnected) return;
      drawAnswer();
      drawBeside();
    }, SOON);
  }

  /** Arcs from a word to those that it must find, and over them to where the heads look. */
  function drawArcs(place = asker) {
    asker = place;
    const { words, partners } = state.sentence;
    const T = words.length;
    const found = (from) => relations.filter(({ name }) => from in partners[name]);
    const needs = words.map((_, place) => found(place).length);
    const from = asker !== null && asker < T ? asker : needs.indexOf(Math.max(...needs));
    const wanted = found(from).map(({ name }) => ({
      from,
      to: partners[name][from],
      head: 0,
      weight: 1,
      isBefore: true,
    }));
    const maps = answer ? mapsOf(answer.weights, { T, first: 0, rows: T }) : [];
    const rows = maps.map((weights, head) => ({
      head: head % state.numHeads,
      name: nameOfHead(head, state),
      row: weights.subarray(from * T, (from + 1) * T),
    }));
    const drawn = rows.length > MOST_ARCS ? [rows[state.head]] : rows;
    sentence.drawArcs(words, from, drawn, wanted);
  }

  /** Where a reader points in the map, that word looks. */
  function read({ row }) {
    drawArcs(truthOf(state.sentence, relations).first + row);
    drawReading();
  }

  function drawAnswer() {
    clearTimeout(drawing);
    drawing = null;
    if (answer?.run !== run()) answer = null; // its model was given up
    const { head, muted, forbidden } = state;
    const truth = truthOf(state.sentence, relations, forbidden);
    const { words } = state.sentence;
    const form = [words.length, truth.first, truth.rows].join();
    if (form !== largeMap?.form) {
      largeMap = { form, map: createLargeMap(words, truth, { read }) };
      mapPlace.replaceChildren(largeMap.map.node);
    }
    const questions = questionsOf(state.sentence, task, setting);
    const maps = answer && mapsOf(answer.weights, truth);
    const specialties = specialtiesOf(run());
    const given = answer === null ? null : answeredBy(answer.logits, questions, task);
    sentence.draw(state.sentence, questions, given);
    drawArcs();
    tiles.draw({ of: state, maps, truth, chosen: head, muted, specialties });
    largeMap.map.draw(words, maps?.[head] ?? null, truth, head, state);
    const own = specialties?.[head];
    const is = own
      ? `best at ${nameOf(own.relation)}, ${shortNumber(own.mass)} (${setting.instead}: ${shortNumber(own.share)})`
      : `nowhere better than ${setting.instead}`;
    const name = `Head ${nameOfHead(head, state)}`;
    mapHeading.textContent = specialties ? `${name}: ${is}` : name;
    drawReading();
    drawSpread();
    const isNew = given !== null && nameOfChange(answer.change) === nameOfChange(state);
    if (isNew && runs.isOver(run())) live.textContent = sayLive(questions, given);
  }

  function sayLive(questions, given) {
    const isAsTrained = nameOfChange(state) === "" && run().evaluation;
    const learned = isAsTrained ? `${sayLearned(run())} ` : "";
    return learned + sayAnswers(questions, given, state);
  }

  function drawReading() {
    const cell = largeMap.map.cursor();
    const truth = truthOf(state.sentence, relations, state.forbidden);
    const weights = answer && mapsOf(answer.weights, truth)[state.head];
    const { words } = state.sentence;
    reading.textContent = "Point at a cell, or move there by arrow keys, to read its weight.";
    if (cell === null || !weights) return;
    const { row, column } = cell;
    const asks = truth.first + row;
    const weight = shortNumber(weights[row * words.length + column]);
    const partners = relations.filter(({ name }) => state.sentence.partners[name][asks] === column);
    const roles = partners.map(
      ({ name }) => ` That is ${setting.partner ?? `its ${partOf(name)}`}.`,
    );
    const isIt = ([barred, key]) => barred === row && key === column;
    const barred = truth.forbiddenIn(state.head).some(isIt) ? " That look is forbidden." : "";
    reading.textContent = `${words[asks]} looks at ${words[column]} with ${weight}.${roles.join("")}${barred}`;
  }

  /** The other model's heads. What a reader has pressed stays where it is. */
  function drawBeside() {
    const pressed = kept.node.querySelector(":focus");
    const top = pressed?.getBoundingClientRect().top;
    showBeside(runBeside());
    if (pressed) window.scrollBy(0, pressed.getBoundingClientRect().top - top);
  }

  function showBeside(other) {
    if (answerBeside?.run !== other) answerBeside = null;
    ofShown.hidden = other === null;
    if (other === null) {
      for (const part of [scoresBeside.node, headsBeside]) part.remove();
      return;
    }
    if (!headsBeside.isConnected) {
      scores.node.after(scoresBeside.node);
      shownHeads.after(headsBeside);
    }
    ofShown.textContent = inShort(state);
    ofBeside.textContent = inShort(other);
    const truth = truthOf(state.sentence, relations);
    const fits = answerBeside?.sentence === state.sentence;
    if (drawing !== null && !fits) return;
    const maps = fits ? mapsOf(answerBeside.weights, truth) : null;
    const specialties = specialtiesOf(other);
    tilesBeside.draw({ of: other, maps, truth, chosen: null, muted: [], specialties });
  }

  const drawScores = onChange((evaluation, rest, shown, beside, ofOther, ..._redrawnWith) => {
    const distances = evaluation === null && ofOther === null ? null : baselines();
    const named = (one) => (beside === null ? "" : `${inShort(one)}. `);
    const { muted, forbidden } = state;
    const shownFor = { of: state, who: named(state), muted, forbidden };
    scores.draw(rest ?? evaluation, rest && evaluation, distances, shownFor);
    scoresBeside.draw(ofOther, null, distances, { of: beside, who: named(beside) });
    numbers.draw(shown, { label: "Table of the scores" });
    drawSharing();
  });

  function drawSharing() {
    const shown = run();
    const evaluation = shown?.evaluation ?? null;
    const found = saySharing(evaluation, setting);
    const trained = evaluation && nameOfChange(state) ? ", as trained" : "";
    sharing.hidden = found.length === 0;
    const one = shown?.numHeads === 1 && spread?.run === shown ? spread.heads?.[0] : null;
    sharing.replaceChildren(
      createHeading(`What one word needs, and which heads look for it best${trained}`),
      ...found.map(({ text, whose, isShared }) => {
        const line = element("p", {}, `${text}: `, element("strong", {}, whose));
        line.classList.toggle("attn-shared", isShared);
        return line;
      }),
      ...(task.withOtherValues ? [createNote(one ? sayOneHead(shown, one) : "")] : []),
    );
  }

  const drawMany = onChange((shown, beside, isRepeating, problem, ...over) => {
    const own = over.filter((one) => one.setting.key === setting.key && !one.isGiven);
    kept.draw(over, shown, beside);
    repeat.draw(own, shown, { isRepeating, problem });
  });

  function drawRun() {
    const [shown, beside] = [run(), runBeside()];
    const all = runs.all.filter((one) => one.setting.name === setting.name);
    const own = all.filter((one) => one.setting.key === setting.key);
    curves.draw(own, shown);
    const isKnown = runs.isOver(shown) && ofRest?.run === shown;
    const rest = isKnown ? ofRest.evaluation : null;
    const ofOther = beside?.evaluation ?? null;
    drawScores(
      shown?.evaluation ?? null,
      rest,
      shown,
      beside,
      ofOther,
      shown?.digest,
      nameOfChange(state),
    );
    forbidding.draw(state, shown?.evaluation, rest);
    const problem = own.find((one) => one.isInBackground && one.state === "failed")?.problem ?? "";
    const over = all.filter((one) => runs.isOver(one) && one.evaluation);
    drawMany(shown, beside, runs.isRepeating(setting), problem, ...over);
    drawBeside();
    vary();
  }

  function draw(next) {
    const before = state;
    state = next;
    const isOther = ["numHeads", "seed", "isGiven"].some((name) => state[name] !== before?.[name]);
    const isChanged = before === null || nameOfChange(state) !== nameOfChange(before);
    if (isOther || state.sentence !== before?.sentence) answer = null;
    switches.draw(state, state.muted);
    look(); // first: its answer is soon there, an evaluation takes longer
    if (isOther || isChanged) evaluateRest();
    const isAsked = isChanged || state.sentence !== before?.sentence;
    const mayWait = before !== null && !isOther && isAsked && canBeAsked(run());
    if (mayWait) drawSoon();
    keepBeside();
    drawRun();
    if (!mayWait) drawAnswer();
  }

  /** Have the model beside stay, and trained once the other one is, if it has been asked for. */
  function keepBeside() {
    const { beside, trained, numHeads, seed } = state;
    const isShown = beside.join() === [numHeads, seed].join();
    if (trained && run() && beside.length > 0 && !isShown) runs.keep(setting, ...beside);
  }

  /** A run has changed; how far a model in the background has come is not to be seen. */
  function hear(changed) {
    const isSeen = changed === run() || (changed !== null && changed === runBeside());
    if (!isSeen) {
      if (changed?.state !== "training" || changed.steps === 0) drawRun();
      return false;
    }
    if (changed === run() && runs.isOver(changed) && changed.evaluation) evaluateRest();
    keepBeside();
    drawRun();
    look();
    return true;
  }
  return { node, sentence: sentencePanel, draw, drawRun, hear };
}
