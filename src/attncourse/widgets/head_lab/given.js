// HeadLab with a reader's own model: what it must be, and the weights that it came with.

import { concord } from "../engine/language.js";
import { TransformerModel } from "../engine/model.js";
import { checkSpec, should } from "../engine/spec.js";
import { headsInWords } from "../lab/words.js";
import { readerOf } from "../shared/state.js";

/** Throw unless a spec describes a model of one layer that can answer about Concord. */
export function checkForm(spec) {
  checkSpec(spec);
  const sizes = Object.entries(concord.readouts).map(([name, answers]) => [name, answers.length]);
  const wanted = JSON.stringify(Object.fromEntries(sizes));
  const words = concord.vocabulary.length;
  should(spec.blocks.length === 1, "blocks", "one, whose heads are shown", spec.blocks.length);
  should(
    spec.vocabulary_size === words,
    "vocabulary_size",
    `Concord's, ${words}`,
    spec.vocabulary_size,
  );
  should(spec.length >= concord.length, "length", `${concord.length} or more`, spec.length);
  const isConcord = JSON.stringify(spec.readouts) === wanted;
  should(isConcord, "readouts", `Concord's, ${wanted}`, spec.readouts);
}

const known = new WeakMap(); // weights as bytes -> as readGiven returns them

/** A model's weights as they came: arrays by torch's names; null where none were given. */
export function readGiven(model, spec) {
  const bytes = model.get("weights");
  if (!(bytes?.byteLength > 0)) return null;
  if (!known.has(bytes)) {
    const { parameters } = new TransformerModel(spec);
    const total = parameters.reduce((sum, { values }) => sum + values.length, 0);
    const numbers = readerOf(model).numbers("weights", total);
    const weights = {};
    let at = 0;
    for (const { name, values } of parameters) {
      weights[name] = numbers.slice(at, at + values.length);
      at += values.length;
    }
    known.set(bytes, weights);
  }
  return known.get(bytes);
}

/** What a reader's model is, in words. */
export function sayForm({ d_model: d, blocks: [block] }) {
  const { num_heads: h, num_kv_heads: hOfKeys, feed_forward: network, norms } = block;
  const heads = headsInWords(h) + (hOfKeys < h ? ` that share ${hOfKeys} of keys and values` : "");
  const inside = network === null ? "no feed-forward network" : `d_ff = ${network.d_ff}`;
  const position = { pre: " before", post: " after" }[block.norm_position] ?? "";
  const norm = norms.length > 0 ? `${norms[0].kind}${position}` : "no norm";
  return `The lab trains a model like yours: d = ${d}, ${heads}, ${inside}, ${norm}.`;
}
