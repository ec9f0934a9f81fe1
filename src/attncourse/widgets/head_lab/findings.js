// What trained heads do, found in their weights, and what baselines would get: plain arithmetic.

/** A relation in words: "verb → object". */
export function nameOf(relation) {
  return relation.replace(">", " → ");
}

/** Concord's chance level, where the relation is known: four classes, four adverbs. */
export const CHANCE = 1 / 4;

/** What is looked for in a relation: "object", or all of its name. */
export function partOf(relation) {
  return relation.split(">").at(-1);
}

/** Above this share of right answers, a relation counts as learned. */
export const LEARNED = 0.9;

export function hasLearned({ relations }, name) {
  return relations[name] >= LEARNED;
}

/** All [word, partner] of a sentence in which a relation holds, as places. */
export function pairsOf(sentence, relation) {
  const pairs = Object.entries(sentence.partners[relation] ?? {});
  return pairs.map(([word, partner]) => [Number(word), partner]);
}

/** For each relation where most partners stand, and their share: {offset, share}; as patterns.best_offset. */
export function bestOffsets(sentences, relations) {
  const found = relations.map(({ name }) => {
    const counts = new Map();
    let total = 0;
    for (const sentence of sentences) {
      for (const [word, partner] of pairsOf(sentence, name)) {
        counts.set(partner - word, (counts.get(partner - word) ?? 0) + 1);
        total += 1;
      }
    }
    const inOrder = [...counts].sort(
      ([a, many], [b, more]) => more - many || Math.abs(a) - Math.abs(b) || a - b,
    );
    const [offset, count] = inOrder[0] ?? [0, 0];
    return [name, { offset, share: total > 0 ? count / total : 0 }];
  });
  return Object.fromEntries(found);
}

/** For each relation the weight on its partners of rows that look at all alike: {share}. */
export function evenWeights(sentences, relations) {
  const found = relations.map(({ name }) => {
    // A causal row may look at itself and at all before it.
    const rows = sentences.flatMap((sentence) => pairsOf(sentence, name).map(([row]) => row));
    return [name, { share: rows.reduce((sum, row) => sum + 1 / (row + 1), 0) / rows.length }];
  });
  return Object.fromEntries(found);
}

/** The head that puts most weight on the true partners of a relation: {head, mass}. */
export function bestHead(masses) {
  const mass = Math.max(...masses);
  return { head: masses.indexOf(mass), mass };
}

/** For each relation its best head of all layers; `mass` is that of an evaluation. */
export function bestHeads(mass) {
  return Object.fromEntries(
    Object.entries(mass).map(([relation, layers]) => [relation, bestHead(layers.flat())]),
  );
}

/** The relation in which a head is furthest above a fixed distance, or null. */
export function specialty(head, mass, baselines) {
  const all = Object.entries(mass).map(([relation, layers]) => ({
    relation,
    mass: layers.flat()[head],
    ...baselines[relation],
  }));
  const best = all.reduce((a, b) => (b.mass - b.share > a.mass - a.share ? b : a));
  return best.mass > best.share ? best : null;
}

/** Relations that the same word needs: pairs of names, such as verb>subject and verb>object. */
export function needsOfOneWord(relations) {
  const asker = (name) => name.split(">")[0];
  return relations.flatMap(({ name }, i) =>
    relations
      .slice(i + 1)
      .filter((other) => asker(other.name) === asker(name))
      .map((other) => [name, other.name]),
  );
}

/** Where nine of ten weights of a row lie: {low, high} for each head and column; `maps` are [h, T, T] each. */
export function spreadOf(maps, T, row, columns) {
  const heads = maps[0].length / T ** 2;
  const ofHead = (head, column) => {
    const found = maps.map((weights) => weights[(head * T + row) * T + column]);
    const sorted = Float64Array.from(found).sort();
    const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
    return { low: at(0.05), high: at(0.95) };
  };
  return Array.from({ length: heads }, (_, head) => columns.map((column) => ofHead(head, column)));
}

/** The answer with the largest logit, for each word: places among `count` answers. */
export function answersOf(logits, count) {
  return Array.from({ length: logits.length / count }, (_, word) => {
    const own = logits.subarray(word * count, (word + 1) * count);
    return own.indexOf(own.reduce((a, b) => Math.max(a, b)));
  });
}
