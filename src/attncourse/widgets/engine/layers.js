// The layers of attnlib.model, forward and backward: what torch's autograd does, written out.
//
// Each layer is a class of attnlib's name. `forward` takes x and returns y, and keeps what `backward`
// will need; `backward` takes dy, the loss's derivative by each number of y, puts those by the
// layer's parameters into their gradients, which were 0, and returns dx. What both return is room of
// the layer's own, which the next call writes again.

import { erf } from "../shared/erf.js";
import { addTo, matrix, multiply, transposed } from "./arrays.js";

/** What layers share: their parameters, and room for results that is used again at each step. */
class Layer {
  /** `parameters` makes the parameters of the whole model (see model.js), `name` is torch's for this. */
  constructor(parameters, name) {
    this.parameters = parameters;
    this.name = name;
    this.rooms = {};
  }

  /** A parameter, {values, gradient, ...}, called as in torch's `state_dict()`. */
  parameter(name, ...shape) {
    return this.parameters.add(`${this.name}.${name}`, shape);
  }

  /** An array of at least `size` numbers that this layer calls so; they are whatever they were. */
  room(name, size) {
    if (!(this.rooms[name]?.length >= size)) this.rooms[name] = new this.parameters.Numbers(size);
    return this.rooms[name];
  }

  /** Such an array, the first `size` numbers of it 0. */
  zeros(name, size) {
    return this.room(name, size).fill(0, 0, size);
  }

  /** Some rows of x, `d` wide, one below the other; null stands for all of them, as they are. */
  taken(x, rows, d) {
    if (rows === null) return x;
    const y = this.room("taken", rows.length * d);
    rows.forEach((row, i) => y.set(x.subarray(row * d, (row + 1) * d), i * d));
    return y;
  }
}

/** Rows of a table, looked up: tokens' embeddings, or positions'. */
export class Embedding extends Layer {
  constructor(parameters, name, count, d) {
    super(parameters, name);
    this.d = d;
    this.weight = this.parameter("weight", count, d);
  }

  forward(places, rows) {
    const { d } = this;
    const y = this.room("y", rows * d);
    this.places = places;
    for (let row = 0; row < rows; row++) {
      const from = places[row] * d;
      for (let c = 0; c < d; c++) y[row * d + c] = this.weight.values[from + c];
    }
    return y;
  }

  backward(dy, rows) {
    const { d } = this;
    for (let row = 0; row < rows; row++) {
      const to = this.places[row] * d;
      for (let c = 0; c < d; c++) this.weight.gradient[to + c] += dy[row * d + c];
    }
  }
}

/** y = x W^T + b, as torch's Linear. */
export class Linear extends Layer {
  constructor(parameters, name, widthIn, widthOut, bias) {
    super(parameters, name);
    this.widthIn = widthIn;
    this.widthOut = widthOut;
    this.weight = this.parameter("weight", widthOut, widthIn);
    this.bias = bias ? this.parameter("bias", widthOut) : null;
  }

  forward(x, rows) {
    const { widthIn, widthOut, weight, bias } = this;
    const y = this.room("y", rows * widthOut);
    this.x = x;
    multiply(matrix(x, widthIn), transposed(weight.values, widthIn), y, rows, widthIn, widthOut);
    if (bias === null) return y;
    for (let row = 0; row < rows; row++) {
      for (let c = 0; c < widthOut; c++) y[row * widthOut + c] += bias.values[c];
    }
    return y;
  }

  /** dW = dy^T x, db = the sum of dy's rows, dx = dy W. */
  backward(dy, rows) {
    const { x, widthIn, widthOut, weight, bias } = this;
    const dx = this.room("dx", rows * widthIn);
    const dyT = transposed(dy, widthOut);
    multiply(dyT, matrix(x, widthIn), weight.gradient, widthOut, rows, widthIn);
    multiply(matrix(dy, widthOut), matrix(weight.values, widthIn), dx, rows, widthOut, widthIn);
    if (bias === null) return dx;
    for (let row = 0; row < rows; row++) {
      for (let c = 0; c < widthOut; c++) bias.gradient[c] += dy[row * widthOut + c];
    }
    return dx;
  }
}

/** LayerNorm, or RMSNorm, which subtracts no mean: y = normal * gain + bias. */
export class Norm extends Layer {
  constructor(parameters, name, d, { kind, eps, bias }) {
    super(parameters, name);
    this.d = d;
    this.eps = eps;
    this.isCentered = kind === "LayerNorm";
    this.gain = this.parameter("gain", d);
    this.bias = bias ? this.parameter("bias", d) : null;
  }

  forward(x, rows) {
    const { d, gain, bias } = this;
    const y = this.room("y", rows * d);
    const normal = this.room("normal", rows * d);
    const factor = this.room("factor", rows); // 1 / standard deviation
    for (let start = 0, row = 0; row < rows; row++, start += d) {
      let [sum, squares] = [0, 0];
      if (this.isCentered) for (let c = 0; c < d; c++) sum += x[start + c];
      const mean = sum / d;
      for (let c = 0; c < d; c++) squares += (x[start + c] - mean) ** 2;
      factor[row] = 1 / Math.sqrt(squares / d + this.eps);
      for (let c = 0; c < d; c++) {
        normal[start + c] = (x[start + c] - mean) * factor[row];
        y[start + c] = normal[start + c] * gain.values[c];
        if (bias !== null) y[start + c] += bias.values[c];
      }
    }
    return y;
  }

  /**
   * Mean and variance depend on every number of a row, so each has a share in their derivatives:
   * with dn = dy * gain, dx = factor * (dn - mean(dn) - normal * mean(dn * normal)).
   */
  backward(dy, rows) {
    const { d, gain, bias } = this;
    const { normal, factor } = this.rooms;
    const dx = this.room("dx", rows * d);
    for (let start = 0, row = 0; row < rows; row++, start += d) {
      let [sum, along] = [0, 0];
      for (let c = 0; c < d; c++) {
        const dn = dy[start + c] * gain.values[c];
        if (this.isCentered) sum += dn;
        along += dn * normal[start + c];
        gain.gradient[c] += dy[start + c] * normal[start + c];
        if (bias !== null) bias.gradient[c] += dy[start + c];
      }
      for (let c = 0; c < d; c++) {
        const dn = dy[start + c] * gain.values[c];
        dx[start + c] = factor[row] * (dn - (sum + normal[start + c] * along) / d);
      }
    }
    return dx;
  }
}

/** W_2 GELU(W_1 x), each token by itself; GELU(x) = x times how much of a normal bell lies below x. */
export class FeedForward extends Layer {
  constructor(parameters, name, d, hidden, bias) {
    super(parameters, name);
    this.hidden = hidden; // d_ff
    this.W_1 = new Linear(parameters, `${name}.W_1`, d, hidden, bias);
    this.W_2 = new Linear(parameters, `${name}.W_2`, hidden, d, bias);
  }

  forward(x, { rows }) {
    const size = rows * this.hidden;
    const before = this.W_1.forward(x, rows);
    const below = this.room("below", size);
    const y = this.room("y", size);
    for (let i = 0; i < size; i++) {
      below[i] = (1 + erf(before[i] / Math.SQRT2)) / 2;
      y[i] = before[i] * below[i];
    }
    this.before = before;
    return this.W_2.forward(y, rows);
  }

  backward(dy, { rows }) {
    const { before, rooms } = this;
    const dx = this.W_2.backward(dy, rows);
    for (let i = 0; i < rows * this.hidden; i++) {
      const height = Math.exp(-(before[i] ** 2) / 2) / Math.sqrt(2 * Math.PI); // of the bell at x
      dx[i] *= rooms.below[i] + before[i] * height;
    }
    return this.W_1.backward(dx, rows);
  }
}

/** h heads side by side: y = W_o (for each head: softmax(q k^T / sqrt(d_k)) v). */
export class MultiHeadAttention extends Layer {
  constructor(parameters, name, d, causal, { num_heads: h, num_kv_heads: hOfKeys, bias }) {
    super(parameters, name);
    this.d = d;
    this.h = h;
    this.causal = causal;
    this.width = d / h; // d_k
    this.dOfKeys = this.width * hOfKeys; // fewer heads of keys and values serve several of queries
    this.shared = h / hOfKeys;
    this.W_q = new Linear(parameters, `${name}.W_q`, d, d, bias);
    this.W_k = new Linear(parameters, `${name}.W_k`, d, this.dOfKeys, bias);
    this.W_v = new Linear(parameters, `${name}.W_v`, d, this.dOfKeys, bias);
    this.W_o = new Linear(parameters, `${name}.W_o`, d, d, bias);
  }

  /**
   * Attend within each sentence. `headMask` has a factor for each head's output: 0 mutes it;
   * `forbidden` has a 1 for each look that is forbidden, in the form of the weights.
   *
   * A row is a token that looks; it may look at the tokens of its own sentence, which are rows too:
   * from `first` up to `end`, or up to itself in a causal model. So sentences of all lengths stand
   * one below the other, and there is no padding to be masked. With `queryRows`, only those rows
   * look, and y has only them.
   */
  forward(x, batch, { headMask = null, forbidden = null, queryRows = null } = {}) {
    const { rows } = batch;
    const count = queryRows?.length ?? rows;
    this.queryRows = queryRows;
    this.forbidden = forbidden;
    this.q = this.W_q.forward(this.taken(x, queryRows, this.d), count);
    this.k = this.W_k.forward(x, rows);
    this.v = this.W_v.forward(x, rows);
    this.headMask = headMask;
    this.weights = this.zeros("weights", this.h * batch.pairs); // for each sentence h x T x T
    const heads = this.zeros("heads", count * this.d);
    this.eachRow(batch, (head, place, first, end, at) =>
      this.look(heads, head, place, first, end, at),
    );
    return this.W_o.forward(heads, count);
  }

  /**
   * What one head of a row sees, which has a `place` in q; its weights go to `at` and after. A
   * forbidden look has the score -Infinity; a row that may look nowhere has weights of 0.
   */
  look(heads, head, place, first, end, at) {
    const { q, k, v, weights, forbidden, width, dOfKeys } = this;
    const mine = place * this.d + head * width;
    const theirs = Math.floor(head / this.shared) * width;
    const scale = 1 / Math.sqrt(width);
    let largest = -Infinity;
    for (let key = first; key < end; key++) {
      const from = key * dOfKeys + theirs;
      let score = 0;
      for (let c = 0; c < width; c++) score += q[mine + c] * k[from + c];
      if (forbidden?.[at + key - first]) score = -Infinity;
      weights[at + key - first] = score * scale;
      largest = Math.max(largest, score * scale);
    }
    if (largest === -Infinity) return void weights.fill(0, at, at + end - first);
    let sum = 0;
    for (let j = at; j < at + end - first; j++) {
      weights[j] = Math.exp(weights[j] - largest);
      sum += weights[j];
    }
    const factor = this.headMask === null ? 1 : this.headMask[head];
    for (let key = first; key < end; key++) {
      weights[at + key - first] /= sum;
      const weight = weights[at + key - first] * factor;
      const from = key * dOfKeys + theirs;
      for (let c = 0; c < width; c++) heads[mine + c] += weight * v[from + c];
    }
  }

  backward(dy, batch) {
    const { rows } = batch;
    const count = this.queryRows?.length ?? rows;
    const dHeads = this.W_o.backward(dy, count);
    this.dq = this.zeros("dq", count * this.d);
    this.dk = this.zeros("dk", rows * this.dOfKeys);
    this.dv = this.zeros("dv", rows * this.dOfKeys);
    this.dWeights = this.room("dWeights", batch.longest);
    this.eachRow(batch, (head, place, first, end, at) =>
      this.lookBack(dHeads, head, place, first, end, at),
    );
    const dx = this.W_k.backward(this.dk, rows);
    addTo(dx, this.W_v.backward(this.dv, rows), rows * this.d);
    return addRows(dx, this.W_q.backward(this.dq, count), this.queryRows, rows, this.d);
  }

  /** `look`, backward. Through softmax, a score's derivative is weight * (its own - their mean). */
  lookBack(dHeads, head, place, first, end, at) {
    const { q, k, v, dq, dk, dv, weights, dWeights, width, dOfKeys } = this;
    const mine = place * this.d + head * width;
    const theirs = Math.floor(head / this.shared) * width;
    const scale = 1 / Math.sqrt(width);
    const factor = this.headMask === null ? 1 : this.headMask[head];
    let mean = 0;
    for (let key = first; key < end; key++) {
      const from = key * dOfKeys + theirs;
      const weight = weights[at + key - first];
      let derivative = 0;
      for (let c = 0; c < width; c++) {
        const dHead = factor * dHeads[mine + c];
        derivative += dHead * v[from + c];
        dv[from + c] += weight * dHead;
      }
      dWeights[key - first] = derivative;
      mean += weight * dWeights[key - first];
    }
    for (let key = first; key < end; key++) {
      const from = key * dOfKeys + theirs;
      const dScore = weights[at + key - first] * (dWeights[key - first] - mean) * scale;
      for (let c = 0; c < width; c++) {
        dq[mine + c] += dScore * k[from + c];
        dk[from + c] += dScore * q[mine + c];
      }
    }
  }

  /**
   * Call visit(head, place, first, end, at) for each head of each row that looks, of each sentence;
   * `place` is the row's among those that look.
   */
  eachRow({ starts }, visit) {
    const { queryRows } = this;
    let at = 0;
    let before = 0; // rows that look, in the sentences before
    for (let s = 0; s + 1 < starts.length; s++) {
      const [first, end] = [starts[s], starts[s + 1]];
      let place;
      for (let head = 0; head < this.h; head++) {
        place = before;
        for (let row = first; row < end; row++, at += end - first) {
          if (queryRows !== null && queryRows[place] !== row) continue;
          visit(head, place, first, this.causal ? row + 1 : end, at);
          place += 1;
        }
      }
      before = place;
    }
  }
}

/** Attention, then perhaps a feed-forward network, each with its norm and its residual. */
export class TransformerBlock extends Layer {
  constructor(parameters, name, d, causal, spec) {
    super(parameters, name);
    this.d = d;
    this.normPosition = spec.norm_position;
    this.residual = spec.residual;
    this.attention = new MultiHeadAttention(parameters, `${name}.attention`, d, causal, spec);
    this.parts = [this.attention];
    if (spec.feed_forward !== null) {
      const { d_ff, bias } = spec.feed_forward;
      this.parts.push(new FeedForward(parameters, `${name}.feed_forward`, d, d_ff, bias));
    }
    this.norms = spec.norms.map(
      (norm, i) => new Norm(parameters, `${name}.norm_${i + 1}`, d, norm),
    );
  }

  /** For each sub-layer f: x + f(norm(x)), norm(x + f(x)) or x + f(x); "x +" only if residual. */
  forward(x, batch, { queryRows = null, ...options } = {}) {
    const after = { ...batch, rows: queryRows?.length ?? batch.rows }; // query rows alone go on
    const size = after.rows * this.d;
    this.queryRows = queryRows;
    this.after = after;
    return this.parts.reduce((x, f, i) => {
      const [before, some] = i === 0 ? [batch, queryRows] : [after, null];
      const inside = this.normPosition === "pre" ? this.norms[i].forward(x, before.rows) : x;
      const sum = this.room(`sum ${i}`, size);
      sum.set(f.forward(inside, before, { ...options, queryRows: some }).subarray(0, size));
      if (this.residual) addTo(sum, this.taken(x, some, this.d), size);
      return this.normPosition === "post" ? this.norms[i].forward(sum, after.rows) : sum;
    }, x);
  }

  backward(dy, batch) {
    const { after } = this;
    return this.parts.reduceRight((dy, f, i) => {
      const [before, some] = i === 0 ? [batch, this.queryRows] : [after, null];
      const dSum = this.normPosition === "post" ? this.norms[i].backward(dy, after.rows) : dy;
      const inside = f.backward(dSum, before);
      const dx = this.normPosition === "pre" ? this.norms[i].backward(inside, before.rows) : inside;
      // What went past f comes back so.
      return this.residual ? addRows(dx, dSum, some, before.rows, this.d) : dx;
    }, dy);
  }
}

/** Add dy to dx, `d` wide: row by row to those that were `taken`, or all to all; returns dx. */
function addRows(dx, dy, taken, rows, d) {
  if (taken === null) return addTo(dx, dy, rows * d);
  taken.forEach((row, i) => {
    for (let c = 0; c < d; c++) dx[row * d + c] += dy[i * d + c];
  });
  return dx;
}

/**
 * -log softmax(logits)[answer], summed over the rows where an answer is due; null elsewhere.
 *
 * dLogits becomes `share` times its derivative: the softmax, less 1 at the answer.
 */
export function crossEntropy(logits, answers, count, dLogits, share) {
  let total = 0;
  for (let row = 0; row < answers.length; row++) {
    const at = row * count;
    if (answers[row] === null) {
      dLogits.fill(0, at, at + count);
      continue;
    }
    let largest = -Infinity;
    for (let c = at; c < at + count; c++) largest = Math.max(largest, logits[c]);
    let sum = 0;
    for (let c = at; c < at + count; c++) sum += Math.exp(logits[c] - largest);
    const right = at + answers[row];
    for (let c = at; c < at + count; c++) {
      dLogits[c] = share * (Math.exp(logits[c] - largest) / sum - (c === right ? 1 : 0));
    }
    total += largest + Math.log(sum) - logits[right];
  }
  return total;
}
