// Numbers and lists in words, numbers as readers type them, and round ones for an axis.

/** A number as text, with a minus sign as prose has it in place of a hyphen: "−1.5", "1e−7". */
export function withMinus(number) {
  return String(number).replace(/-(?=[\d.])/g, "\u2212");
}

/** "34,560", as prose has it. */
export function wholeText(number) {
  return number.toLocaleString("en-US");
}

/** "1 layer", "4,096 tokens" */
export function many(number, thing) {
  return `${wholeText(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** "0.31" */
export function shortNumber(weight, digits = 2) {
  return withMinus(weight.toFixed(digits));
}

/** ".31" where a cell or a tile has no room for the zero; "1.00" when it rounds to 1. */
export function tileNumber(weight) {
  return shortNumber(weight).replace(/^0/, "");
}

/** A number with two decimals at most, and an exponent where it would be long: "−1.5", "2e6". */
export function plainNumber(number) {
  const size = Math.abs(number);
  if (size === Infinity) return number < 0 ? "\u2212∞" : "∞";
  const isLong = size >= 1e5 || (size > 0 && size < 0.005);
  return withMinus(isLong ? number.toExponential(1).replace("e+", "e") : Number(number.toFixed(2)));
}

/** Items as a list in words: "3, 4 and 5". */
export function inWords(items) {
  return [items.slice(0, -1).join(", "), items.at(-1)].filter((part) => part !== "").join(" and ");
}

/** Round numbers from low to high: multiples of 1, 2 or 5 times a power of ten, `most` steps or fewer. */
export function roundTicks(low, high, most) {
  const smallest = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(smallest));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= smallest);
  const first = Math.ceil(low / step);
  const count = Math.floor(high / step) - first + 1;
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

/**
 * A text with the digits and signs of ASCII in place of those that other keyboards and typesetters
 * have for the same: Arabic and Persian digits and decimal separator, fullwidth characters, hyphens,
 * dashes and the minus sign. Marks that only tell the direction of writing are left out.
 */
export function inAscii(text) {
  return text
    .replace(/[\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g, "")
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => digit.charCodeAt(0) & 0xf)
    .replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/[\u2010-\u2013\u2212\ufe63]/g, "-")
    .replaceAll("\u066b", ".")
    .trim();
}

/** Whether nothing is to be seen in a text. */
export function isBlank(text) {
  return inAscii(text) === "";
}

/** Whether a comma in a text may stand between thousands as well as for the point: 4,096. */
export function hasDoubtfulComma(text) {
  return /(?<![\d.,])[1-9]\d{0,2},\d{3}(?![\d.,])/.test(inAscii(text));
}

/** What a reader typed as a number, or NaN. A comma may stand for the point, unless in doubt. */
export function parseNumber(text) {
  if (hasDoubtfulComma(text)) return NaN;
  const plain = inAscii(text).replace(",", ".");
  return /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}
