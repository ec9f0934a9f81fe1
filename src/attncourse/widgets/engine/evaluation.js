// What a model gets right, as attncourse.training's `evaluate` counts it, and where its heads look.

/**
 * Ask a model about sentences. Returns {loss, joint, readouts, relations, mass}: the mean
 * cross-entropy; shares of right answers, of a word's together, of each readout and, where a word
 * must find its partner, of each relation; and for each relation, layer and head the mean weight
 * from a word to its partner. What no sentence has is left out.
 *
 * `relations` are {name, readout}; a sentence's `partners` have for each, by its name, an object
 * {word: partner} of places. `options` are those of `pack` and `forward`.
 */
export function evaluate(model, sentences, relations = [], { forbidden, ...options } = {}) {
  let [loss, due] = [0, 0];
  const joint = [];
  const readouts = {};
  const found = {};
  const mass = {};
  for (const sentence of sentences) {
    const batch = model.pack([sentence], { forbidden });
    const { logits, weights } = model.forward(batch, options);
    if (batch.due > 0) loss += batch.due * model.loss(batch, { logits });
    due += batch.due;
    const right = rightAnswers(model, batch, logits);
    for (const [name, ofWords] of Object.entries(right)) {
      add(readouts, name, ...ofWords.filter((isRight) => isRight !== null));
    }
    for (let word = 0; word < batch.rows; word++) {
      const own = Object.values(right).map((ofWords) => ofWords[word]);
      if (own.some((isRight) => isRight !== null)) joint.push(!own.includes(false));
    }
    for (const { name, readout } of relations) {
      for (const [word, partner] of Object.entries(sentence.partners?.[name] ?? {})) {
        add(found, name, right[readout][word]);
        mass[name] ??= model.blocks.map(({ attention }) => Array(attention.h).fill(0));
        mass[name].forEach((heads, layer) => {
          const at = (head) => head * batch.pairs + word * batch.rows + partner;
          for (const head of heads.keys()) heads[head] += weights[layer][at(head)];
        });
      }
    }
  }
  const shareOf = (sums, name) => sums.map((heads) => heads.map((sum) => sum / found[name].length));
  return {
    loss: loss / due,
    joint: mean(joint),
    readouts: mapped(readouts, mean),
    relations: mapped(found, mean),
    mass: mapped(mass, shareOf),
  };
}

/** For each readout whether each word's answer is right; null where none is due. */
function rightAnswers(model, batch, logits) {
  const ofReadout = ({ name, size }, r) => {
    const isRight = (answer, word) => answer === largestOf(logits[name], word * size, size);
    const right = (answer, word) => (answer === null ? null : isRight(answer, word));
    return [name, batch.answers[r].map(right)];
  };
  return Object.fromEntries(model.readouts.map(ofReadout));
}

/** The place of the largest of `count` numbers. */
function largestOf(x, from, count) {
  let largest = 0;
  for (let c = 1; c < count; c++) if (x[from + c] > x[from + largest]) largest = c;
  return largest;
}

function add(lists, name, ...items) {
  if (items.length === 0) return;
  lists[name] ??= [];
  lists[name].push(...items);
}

function mean(values) {
  return values.reduce((sum, value) => sum + Number(value), 0) / values.length;
}

function mapped(record, f) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value, name)]));
}
