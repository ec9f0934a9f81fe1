// A widget's state in the browser: read and checked, set by a reader, and watched.

import { inWords } from "./numbers.js";

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
  /** A whole number that counts something, `to` at most. */
  function whole(name, to) {
    const isRight = (value) => Number.isInteger(value) && value >= 1 && value <= to;
    return read(name, isRight, `a whole number from 1 to ${to}`);
  }
  /** Whole numbers that count something; an error about one names all. */
  function counts(...names) {
    const values = names.map((name) => model.get(name));
    if (!values.every((value) => Number.isInteger(value) && value >= 1)) {
      const wanted = values.every(Number.isInteger) ? "at least 1" : "whole, at least 1";
      const verb = names.length > 1 ? "are" : "is";
      const found = inWords(values.map(inShort));
      throw new Error(`${inWords(names)} should be ${wanted}, but ${verb} ${found}`);
    }
    return values;
  }
  /** The place of one of `size` things. */
  function index(name, size) {
    return read(name, (value) => isIndex(value, size), `one of 0 to ${size - 1}`);
  }
  /** A list of at least `fewest` such `items`, where each `isRight`. */
  function list(name, isRight, items, fewest = 1) {
    const areRight = (value) => value.length >= fewest && value.every(isRight);
    const atLeast = fewest ? `, at least ${fewest}` : "";
    const wanted = `a list of ${items}${atLeast}`;
    return read(name, (value) => Array.isArray(value) && areRight(value), wanted);
  }
  /** The places of several of `size` things; `things` is what an error calls them. */
  function indices(name, size, things, fewest = 0) {
    const isPlace = (value) => isIndex(value, size);
    return list(name, isPlace, `${things} from 0 to ${size - 1}`, fewest);
  }
  function text(name) {
    return read(name, (value) => typeof value === "string", "text");
  }
  /** `count` texts; none where they `mayLack`. */
  function texts(name, count, { mayLack = false } = {}) {
    const value = model.get(name);
    const sizes = mayLack ? [count, 0] : [count];
    if (!Array.isArray(value) || !sizes.includes(value.length)) {
      const wanted = `${count} strings${mayLack ? " or none" : ""}`;
      throw new Error(`${name} should be ${wanted}, but there are ${value?.length ?? "none"}`);
    }
    return value.map(String);
  }
  /** The bytes of `count` numbers, of `size` bytes each. */
  function bytesOf(name, count, size) {
    const bytes = model.get(name);
    const view = ArrayBuffer.isView(bytes)
      ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new DataView(bytes instanceof ArrayBuffer ? bytes : new ArrayBuffer(0));
    if (view.byteLength !== size * count) {
      const wanted = `${count} numbers in ${size * count} bytes`;
      throw new Error(`${name} should be ${wanted}, but is ${view.byteLength}`);
    }
    return view;
  }
  /**
   * `count` little-endian float32 numbers, or float64 where `size` is 8; where one `masks`, minus
   * infinity is one of them.
   */
  function numbers(name, count, { size = 4, masks = false } = {}) {
    const view = bytesOf(name, count, size);
    const take = size === 8 ? view.getFloat64 : view.getFloat32;
    const found = Float64Array.from({ length: count }, (_, i) => take.call(view, size * i, true));
    const isRight = (number) => Number.isFinite(number) || (masks && number === -Infinity);
    if (!found.every(isRight)) throw new Error(`${name} holds a number that isn't finite`);
    return found;
  }
  /** `count` places of `size` things, as little-endian uint16. */
  function places(name, count, size) {
    const view = bytesOf(name, count, 2);
    const found = new Uint16Array(count);
    for (let i = 0; i < count; i++) found[i] = view.getUint16(2 * i, true); // there may be a million
    if (!found.every((place) => place < size)) {
      throw new Error(`${name} should be places from 0 to ${size - 1}, but one is beyond`);
    }
    return found;
  }
  /** `count` bytes. */
  function bytes(name, count) {
    const { buffer, byteOffset } = bytesOf(name, count, 1);
    return new Uint8Array(buffer, byteOffset, count);
  }
  return { read, whole, counts, index, indices, list, text, texts, numbers, places, bytes };
}

/** A value in a message; of a long list also how much there is. */
export function inShort(value) {
  const text = String(JSON.stringify(value));
  if (text.length <= 40) return text;
  const inAll = Array.isArray(value) ? ` (${value.length} in all)` : "";
  return `${text.slice(0, 40)}…${inAll}`;
}

/** A sentence with values in its braces: "got {number}". */
export function filled(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** A text in quotation marks, as Python's repr writes it unless it holds odd letters. */
export const quoted = (text) => (text.includes("'") ? `"${text}"` : `'${text}'`);

/** A function that sets a trait of the model, as a reader does. */
export function setterOf(model) {
  return (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
}

/**
 * How a view follows its model: `on(traits, draw)` is redrawOn, and `setAll(values)` sets several
 * traits as a reader does, after which each drawing that they call for is made once.
 */
export function followerOf(model) {
  let wanted = null; // drawings, while several traits are set
  const on = (traits, draw) => redrawOn(model, traits, () => (wanted ? wanted.add(draw) : draw()));
  function setAll(values) {
    wanted = new Set();
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
    const draws = wanted;
    wanted = null;
    for (const draw of draws) draw();
  }
  return { on, setAll };
}

/** Call `draw` whenever one of these traits changes; returns how to stop. */
export function redrawOn(model, traits, draw) {
  const events = traits.map((trait) => `change:${trait}`);
  for (const event of events) model.on(event, draw);
  return () => {
    for (const event of events) model.off(event, draw);
  };
}
