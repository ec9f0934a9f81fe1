// GptSteps' model: its weights, taken apart, and its loop over a name, on plain lists of numbers.
//
// Letters: T tokens, V in the vocabulary, d model width, h heads, d_k width of one head.

import { softmaxInPlace } from "../shared/attention.js";
import { erf } from "../shared/erf.js";

export const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const sum = (list) => list.reduce((a, b) => a + b, 0);
const dot = (a, b) => a.reduce((total, number, i) => total + number * b[i], 0);
const add = (a, b) => a.map((number, i) => number + b[i]);

function softmax(scores) {
  const shares = Float64Array.from(scores);
  softmaxInPlace(shares);
  return [...shares];
}

const bell = (x) => (x * (1 + erf(x / Math.SQRT2))) / 2;
const nearlyBell = (x) =>
  (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))) / 2;
const ACTIVATIONS = { relu: (x) => Math.max(0, x), gelu: bell, gelu_tanh: nearlyBell };

const isCount = (value) => Number.isInteger(value) && value >= 1;
const isNorm = (norm) => ["LayerNorm", "RMSNorm"].includes(norm?.kind) && norm.eps >= 0;

/** Whether a description is that of a GPT which the loop can walk through; see checked_form in Python. */
export function isForm(spec) {
  const block = spec?.blocks?.[0];
  const network = block?.feed_forward;
  return (
    [spec?.vocabulary_size, spec?.length, spec?.d_model, block?.num_heads, network?.d_ff].every(
      isCount,
    ) &&
    spec.d_model % block.num_heads === 0 &&
    isNorm(spec.final_norm) &&
    (network.activation ?? "gelu") in ACTIVATIONS
  );
}

/** The sizes of a model by their letters. */
export function sizesOf({ vocabulary_size: V, length, d_model: d, blocks: [block] }) {
  const h = block.num_heads;
  return { V, length, d, h, width: d / h, hidden: block.feed_forward.d_ff };
}

/** The model's parameters in torch's order: [name, how many numbers]. */
function parametersOf(spec) {
  const { V, length, d, hidden } = sizesOf(spec);
  const [block] = spec.blocks;
  const { kind, bias, gain = true } = spec.final_norm;
  const linear = (name, out, into, hasBias) => [
    [`W_${name}`, out * into],
    ...(hasBias ? [[`b_${name}`, out]] : []),
  ];
  const norm = (number) => [
    ...(gain ? [[`gain_${number}`, d]] : []),
    ...(kind === "LayerNorm" && bias ? [[`bias_${number}`, d]] : []),
  ];
  return [
    ["tokens", V * d],
    ["places", length * d],
    ...["q", "k", "v", "o"].flatMap((name) => linear(name, d, d, block.bias)),
    ...linear("1", hidden, d, block.feed_forward.bias),
    ...linear("2", d, hidden, block.feed_forward.bias),
    ...[1, 2, 3].flatMap(norm),
    ...(spec.tied ? [] : linear("next", V, d, spec.readout_bias)),
  ];
}

/** How many numbers a model has. */
export function countOf(spec) {
  return sum(parametersOf(spec).map(([, size]) => size));
}

/** A model's parameters by their names in the code: lists of numbers, row by row. */
function takeApart(spec, numbers) {
  let from = 0;
  const parts = parametersOf(spec).map(([name, size]) => {
    from += size;
    return [name, [...numbers.subarray(from - size, from)]];
  });
  const weights = Object.fromEntries(parts);
  return { W_next: weights.tokens, ...weights }; // a tied readout is the tokens' table
}

/**
 * The loop over a name's tokens. For each of them what its lines make, called as the lines are; of
 * scores and weights a list for each head, over the tokens so far.
 */
export function walk(spec, numbers, ids) {
  const { d, h, width } = sizesOf(spec);
  const { kind, eps } = spec.final_norm;
  const weights = takeApart(spec, numbers);
  const activate = ACTIVATIONS[spec.blocks[0].feed_forward.activation ?? "gelu"];
  const row = (name, i) => weights[name].slice(i * d, (i + 1) * d);

  function linear(x, name) {
    const matrix = weights[`W_${name}`];
    const y = times(matrix.length / x.length, (i) =>
      dot(x, matrix.slice(i * x.length, (i + 1) * x.length)),
    );
    const bias = weights[`b_${name}`];
    return bias === undefined ? y : add(y, bias);
  }
  function norm(x, number) {
    const mean = kind === "LayerNorm" ? sum(x) / d : 0;
    const centered = x.map((one) => one - mean);
    const size = Math.sqrt(dot(centered, centered) / d + eps);
    const gain = weights[`gain_${number}`];
    const y = centered.map((one, i) => ((gain?.[i] ?? 1) * one) / size);
    const bias = weights[`bias_${number}`];
    return bias === undefined ? y : add(y, bias);
  }

  const [keys, values] = [[], []]; // the cache
  return ids.map((token, pos) => {
    const embed = add(row("tokens", token), row("places", pos));
    const a = norm(embed, 1);
    const [q, k, v] = ["q", "k", "v"].map((name) => linear(a, name));
    keys.push(k);
    values.push(v);
    const heads = times(h, (head) => {
      const own = (list) => list.slice(head * width, (head + 1) * width);
      const scores = keys.map((key) => dot(own(q), own(key)) / Math.sqrt(width));
      const shares = softmax(scores);
      const mix = times(width, (c) =>
        dot(
          shares,
          values.map((value) => own(value)[c]),
        ),
      );
      return { scores, shares, mix };
    });
    const joined = heads.flatMap(({ mix }) => mix);
    const output = linear(joined, "o");
    const residual_1 = add(embed, output);
    const norm_2 = norm(residual_1, 2);
    const hidden = linear(norm_2, "1").map(activate);
    const residual_2 = add(residual_1, linear(hidden, "2"));
    const logits = linear(norm(residual_2, 3), "next");
    return {
      ...{ embed, norm_1: a, q, k, v, joined, output, residual_1, norm_2, hidden, residual_2 },
      scores: heads.map(({ scores }) => scores),
      weights: heads.map(({ shares }) => shares),
      logits,
      chances: softmax(logits),
    };
  });
}
