// What trained heads do, found in their weights, and what a dumb rule would get: plain arithmetic.

/** A relation in words: "verb → object". */
export function nameOf(relation) {
  return relation.replace(">", " → ");
}

/** Chance level of an answer for who knows which relation is asked for: four classes, four adverbs. */
export const CHANCE = 1 / 4;

/** Above this share of right answers, a relation counts as learned. */
export const LEARNED = 0.9;

/** All [word, partner] of a sentence in which a relation holds, as places. */
export function pairsOf(sentence, relation) {
  const pairs = Object.entries(sentence.partners[relation] ?? {});
  return pairs.map(([word, partner]) => [Number(word), partner]);
}

/**
 * For each relation by its name the distance at which most partners stand, and their share:
 * {offset, share}. Of several such distances it is the shortest, to the left before to the right, as
 * in attnlib.patterns.best_offset.
 */
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

/** The head that puts most weight on the true partners of a relation: {head, mass}. */
export function bestHead(masses) {
  const mass = Math.max(...masses);
  return { head: masses.indexOf(mass), mass };
}

/** For each relation by its name its best head, as `bestHead`; `mass` is that of an evaluation. */
export function bestHeads(mass) {
  return Object.fromEntries(
    Object.entries(mass).map(([relation, [masses]]) => [relation, bestHead(masses)]),
  );
}

/**
 * What a head is best at: the relation in which it leaves a fixed distance furthest behind; null if
 * it does so in none.
 */
export function specialty(head, mass, baselines) {
  const all = Object.entries(mass).map(([relation, [masses]]) => ({
    relation,
    mass: masses[head],
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

/** The answer with the largest logit, for each word: places among `count` answers. */
export function answersOf(logits, count) {
  return Array.from({ length: logits.length / count }, (_, word) => {
    const own = logits.subarray(word * count, (word + 1) * count);
    return own.indexOf(own.reduce((a, b) => Math.max(a, b)));
  });
}
