// attnlib.model's TransformerModel in the browser: forward, loss, backward.
//
//   const model = new TransformerModel(spec);       // Python's model.spec()
//   model.load(weights);                            // its state_dict(), or model.draw(rng)
//   const batch = model.pack(sentences);
//   const loss = model.loss(batch, model.forward(batch));
//   model.backward(batch);                          // model.parameters have gradients now
//   optimizer.step(rate);                           // see adamw.js

import { addTo } from "./arrays.js";
import { crossEntropy, Embedding, Linear, Norm, TransformerBlock } from "./layers.js";
import { checkSpec, should, shouldCount } from "./spec.js";

const STD = 0.02; // of embeddings, where nothing else is said, as in Python

/** The parameters of a model, in torch's order and by its names: {name, shape, values, gradient}. */
class Parameters {
  constructor(Numbers) {
    this.Numbers = Numbers;
    this.all = [];
  }

  add(name, shape) {
    const size = shape.reduce((a, b) => a * b);
    const [values, gradient] = [new this.Numbers(size), new this.Numbers(size)];
    this.all.push({ name, shape, values, gradient });
    return this.all.at(-1);
  }
}

/**
 * Token and position embeddings, blocks one after the other, a norm, linear readouts.
 *
 * `Numbers` is the type of all its arrays: Float32Array answers, Float64Array trains. With it, losses
 * are exact enough, too, to check a gradient by the difference of two.
 */
export class TransformerModel {
  constructor(spec, { Numbers = Float32Array } = {}) {
    checkSpec(spec);
    const { vocabulary_size: words, length, d_model: d, causal, blocks, final_norm: norm } = spec;
    const parameters = new Parameters(Numbers);
    this.spec = spec;
    this.tokenEmbedding = new Embedding(parameters, "token_embedding", words, d);
    this.positionEmbedding = new Embedding(parameters, "position_embedding", length, d);
    this.blocks = blocks.map(
      (block, i) => new TransformerBlock(parameters, `blocks.${i}`, d, causal, block),
    );
    this.finalNorm = norm === null ? null : new Norm(parameters, "final_norm", d, norm);
    this.readouts = Object.entries(spec.readouts).map(([name, size]) => {
      const layer = new Linear(parameters, `readouts.${name}`, d, size, spec.readout_bias);
      return { name, size, layer }; // its logits are rows x size
    });
    this.parameters = parameters.all;
  }

  /** Take weights: an array of numbers for each parameter, by its name. */
  load(weights) {
    const names = this.parameters.map(({ name }) => name);
    const unknown = Object.keys(weights).filter((name) => !names.includes(name));
    should(unknown.length === 0, "weights", `only those of ${names.join(", ")}`, unknown);
    for (const { name, shape, values } of this.parameters) {
      const given = weights[name];
      const size = `${shape.join(" x ")} numbers`;
      should(given?.length === values.length, name, size, given?.length ?? "missing");
      const odd = given.find((x) => !Number.isFinite(x));
      should(odd === undefined, name, "finite", `${odd}`);
    }
    for (const { name, values } of this.parameters) values.set(weights[name]);
  }

  /** The weights by their names, as float32 arrays of their own, which hold those of the grid exactly. */
  weights() {
    const taken = ({ name, values }) => [name, Float32Array.from(values)];
    return Object.fromEntries(this.parameters.map(taken));
  }

  /**
   * Draw new weights as Python does: embeddings N(0, embedding_std), readouts N(0, readout_std) if there
   * is one, other matrices Xavier-uniform, biases 0.
   */
  draw(rng, { embedding_std = STD, readout_std } = {}) {
    for (const { name, shape, values } of this.parameters) {
      const bound = Math.sqrt(6 / (shape[0] + shape[1]));
      const isEmbedding = name.endsWith("embedding.weight");
      const std = isEmbedding ? embedding_std : name.startsWith("readouts") && readout_std;
      if (name.endsWith("gain")) values.fill(1);
      else if (name.endsWith("bias")) values.fill(0);
      else if (std) fill(values, () => std * rng.normal());
      else fill(values, () => bound * (2 * rng.uniform() - 1));
    }
  }

  /**
   * Sentences, one below the other: a batch is rows of tokens, and where each sentence starts.
   *
   * A sentence is {ids, answers}, as in Python: the answer of each token to each readout, or null
   * where none is due. `answers` may be left out. With `onlyDue`, only rows where an answer is due
   * look in the last layer, as its `queryRows`: the loss and its gradients are the same, and come
   * sooner. The logits and answers are then theirs alone. With `forbidden`, {relation, head, layer},
   * no word may look at its partner in that relation, by that head of that layer, or by any head if
   * it is null, and in each layer if none is said.
   */
  pack(sentences, { onlyDue = false, forbidden = null } = {}) {
    const { vocabulary_size: words, length } = this.spec;
    should(sentences?.length > 0, "a batch", "one sentence at least", sentences);
    const starts = [0];
    for (const [s, { ids }] of sentences.entries()) {
      shouldCount(ids?.length, `the length of sentence ${s}`, 1, length);
      for (const id of ids) shouldCount(id, `a word of sentence ${s}`, 0, words - 1);
      starts.push(starts.at(-1) + ids.length);
    }
    const answers = this.readouts.map(({ name, size }) =>
      sentences.flatMap(({ ids, answers }, s) => {
        const due = answers?.[name] ?? ids.map(() => null);
        should(due.length === ids.length, `answers ${name} of sentence ${s}`, "one per word", due);
        for (const answer of due) {
          if (answer !== null) shouldCount(answer, `an answer ${name} of ${s}`, 0, size - 1);
        }
        return due;
      }),
    );
    const lengths = sentences.map(({ ids }) => ids.length);
    const rows = starts.at(-1);
    const isDue = (_, row) => answers.some((ofReadout) => ofReadout[row] !== null);
    const places = Array.from({ length: rows }, (_, row) => row);
    const queryRows = onlyDue && this.blocks.length > 0 ? places.filter(isDue) : null;
    const ofQueryRows = (ofReadout) => queryRows?.map((row) => ofReadout[row]) ?? ofReadout;
    const looks = ({ attention: { h } }, layer) =>
      (forbidden.layer ?? layer) === layer ? partnerLooks(sentences, forbidden, h) : null;
    return {
      rows,
      queryRows,
      forbidden: forbidden && this.blocks.map(looks),
      starts,
      tokens: sentences.flatMap(({ ids }) => ids),
      positions: sentences.flatMap(({ ids }) => ids.map((_, i) => i)),
      answers: answers.map(ofQueryRows),
      due: answers.flat().filter((answer) => answer !== null).length,
      pairs: lengths.reduce((sum, T) => sum + T * T, 0), // of a token that looks and one looked at
      longest: Math.max(...lengths),
    };
  }

  /**
   * Answer about each token. Returns {logits, weights}: for each readout by its name rows x answers,
   * for each layer the heads' weights, h x T x T for one sentence after the other.
   *
   * The arrays are the model's own: the next call writes them again. They may be longer than what
   * they hold. Rows that aren't `queryRows` have no logits, and weights of 0 in the last layer.
   * `headMasks` has for each layer a factor for each head (0 mutes it), or null.
   */
  forward(batch, { headMasks = null } = {}) {
    const { rows, queryRows, forbidden } = batch;
    const size = rows * this.spec.d_model;
    const last = this.blocks.length - 1;
    this.checkHeadMasks(headMasks);
    let x = this.tokenEmbedding.forward(batch.tokens, rows);
    addTo(x, this.positionEmbedding.forward(batch.positions, rows), size);
    this.blocks.forEach((block, layer) => {
      x = block.forward(x, batch, {
        headMask: headMasks?.[layer],
        forbidden: forbidden?.[layer],
        queryRows: layer === last ? queryRows : null,
      });
    });
    const count = queryRows?.length ?? rows;
    if (this.finalNorm !== null) x = this.finalNorm.forward(x, count);
    const logits = this.readouts.map(({ name, layer }) => [name, layer.forward(x, count)]);
    const weights = this.blocks.map(({ attention }) => attention.weights);
    return { logits: Object.fromEntries(logits), weights };
  }

  /** The mean cross-entropy of all answers that are due, of what `forward` said of the batch. */
  loss(batch, { logits }) {
    should(batch.due > 0, "the number of answers that are due", "1 or more", batch.due);
    const losses = this.readouts.map(({ name, size, layer }, r) => {
      const dLogits = layer.room("dLogits", batch.answers[r].length * size);
      return crossEntropy(logits[name], batch.answers[r], size, dLogits, 1 / batch.due);
    });
    return losses.reduce((a, b) => a + b) / batch.due;
  }

  /** The loss's derivative by each parameter, after `loss`: their gradients. */
  backward(batch) {
    const { rows, queryRows } = batch;
    const count = queryRows?.length ?? rows;
    for (const { gradient } of this.parameters) gradient.fill(0);
    let dx = this.readouts
      .map(({ layer }) => layer.backward(layer.rooms.dLogits, count))
      .reduce((a, b) => addTo(a, b, count * this.spec.d_model));
    if (this.finalNorm !== null) dx = this.finalNorm.backward(dx, count);
    dx = this.blocks.reduceRight((dx, block) => block.backward(dx, batch), dx);
    this.positionEmbedding.backward(dx, rows);
    this.tokenEmbedding.backward(dx, rows);
  }

  /** What `forward` says of one sentence, as arrays of their own: {logits, weights}. */
  answer(sentence, { forbidden, ...options } = {}) {
    const batch = this.pack([sentence], { forbidden });
    const { logits, weights } = this.forward(batch, options);
    const said = this.readouts.map(({ name, size }) => {
      return [name, logits[name].slice(0, batch.rows * size)];
    });
    const maps = this.blocks.map(({ attention: { h } }, i) => weights[i].slice(0, h * batch.pairs));
    return { logits: Object.fromEntries(said), weights: maps };
  }

  /** Throw unless head masks are none at all, or fit the layers. */
  checkHeadMasks(headMasks) {
    if (headMasks === null) return;
    const count = this.blocks.length;
    should(headMasks.length === count, "headMasks", `one for each of ${count} layers`, headMasks);
    this.blocks.forEach(({ attention: { h } }, i) => {
      const mask = headMasks[i];
      const isRight = mask === null || (mask.length === h && mask.every(Number.isFinite));
      should(isRight, `headMasks[${i}]`, `null or ${h} numbers`, mask);
    });
  }
}

/** A 1 for each look of a word at its partner, as `pack` is told, in the form of h heads' weights. */
function partnerLooks(sentences, { relation, head }, h) {
  if (head !== null) shouldCount(head, "the forbidden head", 0, h - 1);
  return sentences.flatMap(({ ids, partners = {} }) => {
    const isKnown = Object.hasOwn(partners, relation);
    should(isKnown, "the forbidden relation", "one of the sentence's", relation);
    const looks = Array(h * ids.length ** 2).fill(0);
    for (const [word, partner] of Object.entries(partners[relation])) {
      for (let i = head ?? 0; i <= (head ?? h - 1); i++) {
        looks[(i * ids.length + Number(word)) * ids.length + partner] = 1;
      }
    }
    return looks;
  });
}

/** Fill an array with drawn numbers. */
function fill(values, draw) {
  for (let i = 0; i < values.length; i++) values[i] = draw();
}
