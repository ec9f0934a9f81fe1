// A widget's state in the browser: read and checked, set by a reader, and watched.

/**
 * Reads a model's traits and throws, in words, at what isn't as it should be: the state may come
 * from a file that somebody has edited.
 */
export function readerOf(model) {
  const isIndex = (i, size) => Number.isInteger(i) && i >= 0 && i < size;

  /** A trait that `isRight`, or an error that says what was `wanted` instead. */
  function read(name, isRight, wanted) {
    const value = model.get(name);
    if (!isRight(value)) throw new Error(`${name} should be ${wanted}, but is ${inShort(value)}`);
    return value;
  }
  /** A whole number; one that counts something is at least 1. */
  function whole(name, to = Infinity) {
    const range = to === Infinity ? "at least 1" : `a whole number from 1 to ${to}`;
    return read(name, (value) => Number.isInteger(value) && value >= 1 && value <= to, range);
  }
  /** The place of one of `size` things. */
  function index(name, size) {
    return read(name, (value) => isIndex(value, size), `one of 0 to ${size - 1}`);
  }
  /** The places of several of `size` things, of `fewest` at least. */
  function indices(name, size, fewest = 0) {
    const areRight = (value) => value.length >= fewest && value.every((i) => isIndex(i, size));
    const wanted = `among 0 to ${size - 1}`;
    return read(name, (value) => Array.isArray(value) && areRight(value), wanted);
  }
  /** A list in which each item `isRight`, with `fewest` items at least. */
  function list(name, isRight, wanted, fewest = 1) {
    const areRight = (value) => value.length >= fewest && value.every(isRight);
    return read(name, (value) => Array.isArray(value) && areRight(value), wanted);
  }
  function text(name) {
    return read(name, (value) => typeof value === "string", "text");
  }
  /** Texts, as many as `sizes` allow. */
  function texts(name, ...sizes) {
    const value = model.get(name);
    if (!Array.isArray(value) || !sizes.includes(value.length)) {
      const wanted = sizes.join(" or ");
      throw new Error(
        `${name} should be ${wanted} strings, but there are ${value?.length ?? "none"}`,
      );
    }
    return value.map(String);
  }
  /** `count` little-endian float32 numbers, or float64 where `size` is 8. */
  function numbers(name, count, { size = 4 } = {}) {
    const bytes = model.get(name);
    const view = ArrayBuffer.isView(bytes)
      ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new DataView(bytes instanceof ArrayBuffer ? bytes : new ArrayBuffer(0));
    if (view.byteLength !== size * count) {
      const wanted = `${count} numbers in ${size * count} bytes`;
      throw new Error(`${name} should be ${wanted}, but is ${view.byteLength}`);
    }
    const take = size === 8 ? view.getFloat64 : view.getFloat32;
    const found = Float64Array.from({ length: count }, (_, i) => take.call(view, size * i, true));
    if (!found.every(Number.isFinite)) throw new Error(`${name} holds a number that isn't finite`);
    return found;
  }
  return { read, whole, index, indices, list, text, texts, numbers };
}

/** A value in a message. */
function inShort(value) {
  return String(JSON.stringify(value)).slice(0, 40);
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
