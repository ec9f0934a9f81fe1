// What a model is, as Python's `TransformerModel.spec()` says it: described, and checked.

import { inShort } from "../shared/state.js";

/**
 * A model for a task, of blocks that are alike: what Python's `TransformerModel.of_sizes` describes.
 * A task is one of language.js or sequences.js; where `d_ff` is 0 or left out, a block has attention
 * alone.
 */
export function specOf(task, options) {
  const { d_model, num_heads, num_layers = 1, d_ff = 0, ...others } = options;
  const { norm_position = "pre", bias = false } = others;
  const sublayers = d_ff > 0 ? 2 : 1;
  const norm = { kind: "LayerNorm", eps: 1e-5, bias: true };
  const block = {
    num_heads,
    num_kv_heads: num_heads,
    bias,
    attention_dropout: 0,
    feed_forward: d_ff > 0 ? { d_ff, bias } : null,
    norm_position,
    norms: Array(norm_position === null ? 0 : sublayers).fill(norm),
    residual: true,
    dropout: 0,
  };
  const sizes = Object.entries(task.readouts).map(([name, answers]) => [name, answers.length]);
  return {
    vocabulary_size: task.vocabulary.length,
    length: task.length,
    d_model,
    causal: task.causal,
    blocks: Array(num_layers).fill(block),
    final_norm: norm_position === "pre" ? norm : null,
    readouts: Object.fromEntries(sizes),
    readout_bias: bias,
  };
}

// A model with all parts that the engine has. What has other names isn't known here.
const ALL = specOf({ vocabulary: [], readouts: {} }, { d_ff: 1 });
const [BLOCK] = ALL.blocks;

/** Throw, in words, unless something `isRight`. */
export function should(isRight, name, wanted, found) {
  if (!isRight) throw new Error(`${name} should be ${wanted}, but is ${inShort(found)}`);
}

/** Throw unless a value is a whole number, `from` at least and `to` at most. */
export function shouldCount(value, name, from = 1, to = Infinity) {
  const isRight = Number.isInteger(value) && value >= from && value <= to;
  const wanted = to === Infinity ? `${from} or more` : `from ${from} to ${to}`;
  should(isRight, name, `a whole number, ${wanted}`, value);
}

/** Throw unless a spec describes a model that the engine can compute. */
export function checkSpec(spec) {
  should(isRecord(spec), "the model", "described by names", spec);
  shouldHaveOnly(ALL, spec, "the model");
  const { d_model: d } = spec;
  for (const name of ["vocabulary_size", "length", "d_model"]) shouldCount(spec[name], name);
  for (const name of ["causal", "readout_bias"]) shouldBeFlag(spec[name], name);
  should(Array.isArray(spec.blocks), "blocks", "a list", spec.blocks);
  spec.blocks.forEach((block, i) => checkBlock(block, `blocks.${i}`, d));
  if (spec.final_norm !== null) checkNorm(spec.final_norm, "final_norm");
  const { readouts } = spec;
  const hasReadouts = isRecord(readouts) && Object.keys(readouts).length > 0;
  should(hasReadouts, "readouts", "numbers of answers by name", readouts);
  for (const [name, answers] of Object.entries(readouts)) shouldCount(answers, `readouts.${name}`);
}

function checkBlock(block, name, d) {
  should(isRecord(block), name, "described by names", block);
  shouldHaveOnly(BLOCK, block, name);
  const { num_heads: h, num_kv_heads: hOfKeys, feed_forward: network, norms } = block;
  shouldCount(h, `${name}.num_heads`);
  should(d % h === 0, `${name}.num_heads`, `a divisor of d_model, ${d}`, h);
  shouldCount(hOfKeys, `${name}.num_kv_heads`);
  should(h % hOfKeys === 0, `${name}.num_kv_heads`, `a divisor of num_heads, ${h}`, hOfKeys);
  for (const flag of ["bias", "residual"]) shouldBeFlag(block[flag], `${name}.${flag}`);
  for (const dropout of ["attention_dropout", "dropout"]) {
    should(
      block[dropout] === 0,
      `${name}.${dropout}`,
      "0 (nothing drops out here)",
      block[dropout],
    );
  }
  if (network !== null) {
    should(isRecord(network), `${name}.feed_forward`, "described by names, or null", network);
    shouldHaveOnly(BLOCK.feed_forward, network, `${name}.feed_forward`);
    shouldCount(network.d_ff, `${name}.feed_forward.d_ff`);
    shouldBeFlag(network.bias, `${name}.feed_forward.bias`);
  }
  const positions = ["pre", "post", null];
  const position = block.norm_position;
  should(positions.includes(position), `${name}.norm_position`, '"pre", "post" or null', position);
  const count = position === null ? 0 : 1 + (network !== null);
  const hasNorms = Array.isArray(norms) && norms.length === count;
  should(
    hasNorms,
    `${name}.norms`,
    `a list of ${count}, one for each sub-layer with a norm`,
    norms,
  );
  norms.forEach((norm, i) => checkNorm(norm, `${name}.norm_${i + 1}`));
}

function checkNorm(norm, name) {
  const kind = norm?.kind;
  should(["LayerNorm", "RMSNorm"].includes(kind), `${name}.kind`, "LayerNorm or RMSNorm", kind);
  shouldHaveOnly(ALL.final_norm, norm, name);
  should(norm.eps >= 0 && Number.isFinite(norm.eps), `${name}.eps`, "0 or more", norm.eps);
  if (kind === "LayerNorm") shouldBeFlag(norm.bias, `${name}.bias`);
}

/** Throw where Python describes a part that the engine lacks, such as rotary positions. */
function shouldHaveOnly(known, record, name) {
  const others = Object.keys(record).filter((one) => !(one in known));
  const wanted = `described by no other names than ${Object.keys(known).join(", ")}`;
  should(others.length === 0, name, wanted, others);
}

function shouldBeFlag(value, name) {
  should(typeof value === "boolean", name, "true or false", value);
}

function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
