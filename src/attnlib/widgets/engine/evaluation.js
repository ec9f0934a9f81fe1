// What a model gets right, as attnlib.training's `evaluate` counts it, and where its heads look.

/**
 * Ask a model about sentences. Returns {loss, joint, readouts, relations, mass}: the mean
 * cross-entropy; shares of right answers, of a word's together, of each readout and, where a word
 * must find its partner, of each relation; and for each relation, layer and head the mean weight
 * from a word to its partner. What no sentence has is left out.
 *
 * `relations` are {name, readout}; a sentence's `partners` have for each, by its name, an object
 * {word: partner} of places.
 */
export function evaluate(model, sentences, relations = [], options = {}) {
  let [loss, due] = [0, 0];
  const joint = [];
  const readouts = {};
  const found = {};
  const mass = {};
  for (const sentence of sentences) {
    const batch = model.pack([sentence]);
    const { logits, weights } = model.forward(batch, options);
    if (batch.due > 0) loss += batch.due * model.loss(batch, { logits });
    due += batch.due;
    const right = {};
    model.readouts.forEach(({ name, answers: count }, r) => {
      right[name] = batch.answers[r].map((answer, word) =>
        answer === null ? null : answer === largestOf(logits[name], word * count, count),
      );
      add(readouts, name, ...right[name].filter((isRight) => isRight !== null));
    });
    for (let word = 0; word < batch.rows; word++) {
      const own = Object.values(right).map((of) => of[word]);
      if (own.some((isRight) => isRight !== null)) joint.push(!own.includes(false));
    }
    for (const { name, readout } of relations) {
      for (const [word, partner] of Object.entries(sentence.partners?.[name] ?? {})) {
        add(found, name, right[readout][word]);
        const at = word * batch.rows + partner;
        add(
          mass,
          name,
          model.blocks.map(({ attention: { h } }, layer) =>
            Array.from({ length: h }, (_, head) => weights[layer][head * batch.pairs + at]),
          ),
        );
      }
    }
  }
  return {
    loss: loss / due,
    joint: mean(joint),
    readouts: mapped(readouts, mean),
    relations: mapped(found, mean),
    mass: mapped(mass, (maps) =>
      maps[0].map((heads, layer) =>
        heads.map((_, head) => mean(maps.map((map) => map[layer][head]))),
      ),
    ),
  };
}

/** The place of the largest of `count` numbers. */
function largestOf(x, from, count) {
  let largest = 0;
  for (let c = 1; c < count; c++) if (x[from + c] > x[from + largest]) largest = c;
  return largest;
}

function add(lists, name, ...items) {
  lists[name] ??= [];
  lists[name].push(...items);
}

function mean(values) {
  return values.reduce((sum, value) => sum + Number(value), 0) / values.length;
}

function mapped(lists, f) {
  const full = Object.entries(lists).filter(([, list]) => list.length > 0);
  return Object.fromEntries(full.map(([name, list]) => [name, f(list)]));
}
