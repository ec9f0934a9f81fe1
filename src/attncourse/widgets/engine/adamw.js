// The optimizer, and how its learning rate goes up and down.

/**
 * AdamW (Loshchilov & Hutter 2019, algorithm 2), as torch has it: each parameter goes against the
 * running mean of its gradient, by steps of about the learning rate whatever the gradient's size.
 */
export class AdamW {
  /** `parameters` are a model's: {values, gradient}. */
  constructor(parameters, { betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0.01 } = {}) {
    this.betas = betas;
    this.eps = eps;
    this.weightDecay = weightDecay;
    this.steps = 0;
    this.kept = parameters.map(({ values, gradient }) => ({
      values,
      gradient,
      mean: values.slice().fill(0), // of the gradient
      square: values.slice().fill(0), // the mean of its square
    }));
  }

  /** Move every parameter once, by its gradient as it stands. */
  step(rate) {
    const [beta1, beta2] = this.betas;
    this.steps += 1;
    // Both means began at 0; what that makes them too small by is known.
    const share1 = 1 - beta1 ** this.steps;
    const share2 = 1 - beta2 ** this.steps;
    // As torch does, decay first: a weight without a gradient only decays, and then every bit counts.
    const left = 1 - rate * this.weightDecay;
    for (const { values, gradient, mean, square } of this.kept) {
      for (let i = 0; i < values.length; i++) {
        mean[i] += (1 - beta1) * (gradient[i] - mean[i]);
        square[i] = beta2 * square[i] + (1 - beta2) * gradient[i] ** 2;
        const move = mean[i] / share1 / (Math.sqrt(square[i] / share2) + this.eps);
        values[i] = values[i] * left - rate * move;
      }
    }
  }
}
