// What a reader types where a number is wanted: 0.43, 3/7, 27*16, -ln(72/168).

import { hasDoubtfulComma, inAscii } from "./numbers.js";

const NUMBER =
  /\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?![\d.,])|(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?/iy;
const NAME = /[a-z]+/iy;
const SIGN = /\*\*|[-+*\u00d7\u22c5\u00b7/^()]/y;
const CONSTANTS = { e: Math.E, pi: Math.PI };
const FUNCTIONS = {
  ln: Math.log,
  log: Math.log, // as in Python
  exp: Math.exp,
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
};
const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
};

/** The parts of a text, numbers as such, or null where it has something else. */
function partsOf(text) {
  const parts = [];
  for (let at = 0; at < text.length; ) {
    const match = (pattern) => {
      pattern.lastIndex = at;
      return pattern.exec(text)?.[0];
    };
    const number = match(NUMBER);
    const found = number ?? match(NAME) ?? match(SIGN) ?? match(/\s+/y);
    if (found === undefined) return null;
    if (number) parts.push(Number(number.replace(/\s/g, "").replace(",", ".")));
    else if (found.trim()) parts.push(found.toLowerCase().replace(/^[\u00d7\u22c5\u00b7]$/, "*"));
    at += found.length;
  }
  return parts;
}

/** What a reader typed as a finite number or as a calculation with one, or NaN. */
export function calculated(text) {
  const parts = hasDoubtfulComma(text) ? null : partsOf(inAscii(text));
  if (parts === null) return NaN;
  const takes = (...signs) => (signs.includes(parts[0]) ? parts.shift() : undefined);

  function chain(next, ...signs) {
    let left = next();
    for (let sign = takes(...signs); sign; sign = takes(...signs))
      left = OPERATIONS[sign](left, next());
    return left;
  }
  const sum = () => chain(product, "+", "-");
  const product = () => chain(signed, "*", "/");
  function signed() {
    const sign = takes("+", "-");
    if (sign) return sign === "-" ? -signed() : signed();
    const base = atom();
    return takes("^", "**") ? base ** signed() : base;
  }
  function atom() {
    const part = parts.shift();
    if (typeof part === "number") return part;
    if (Object.hasOwn(CONSTANTS, part)) return CONSTANTS[part];
    if (Object.hasOwn(FUNCTIONS, part)) return takes("(") ? FUNCTIONS[part](inParentheses()) : NaN;
    return part === "(" ? inParentheses() : NaN;
  }
  function inParentheses() {
    const inside = sum();
    return takes(")") ? inside : NaN;
  }
  const number = sum();
  return parts.length === 0 && Number.isFinite(number) ? number : NaN;
}
