// A widget's state in the browser: its numbers read and checked, a trait set, changes heard.

/** Read `count` little-endian float32 (or float64) numbers; throws when they aren't there. */
export function readNumbers(name, bytes, count, { size = 4 } = {}) {
  const view = ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes instanceof ArrayBuffer ? bytes : new ArrayBuffer(0));
  if (view.byteLength !== size * count) {
    const wanted = `${count} numbers in ${size * count} bytes`;
    throw new Error(`${name} should be ${wanted}, but is ${view.byteLength}`);
  }
  const read = size === 8 ? view.getFloat64 : view.getFloat32;
  const numbers = Float64Array.from({ length: count }, (_, i) => read.call(view, size * i, true));
  if (!numbers.every(Number.isFinite)) throw new Error(`${name} holds a number that isn't finite`);
  return numbers;
}

/** A function that sets a trait of the model, as a reader does. */
export function setterOf(model) {
  return (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
}

/** Call `draw` whenever one of these traits changes; returns how to stop. */
export function redrawOn(model, traits, draw) {
  const events = traits.map((trait) => `change:${trait}`);
  for (const event of events) model.on(event, draw);
  return () => {
    for (const event of events) model.off(event, draw);
  };
}
