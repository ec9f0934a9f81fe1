// Texts of a lesson's author as nodes.

import { element } from "./dom.js";

const MARKUP = /`([^`]+)`|\*(?!\s)([^*]*[^*\s])\*/g;

/** Text as nodes: `code` and *emphasis* become elements, and whatever else is in it stays text. */
export function inline(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(MARKUP)) {
    const [whole, code, emphasis] = match;
    nodes.push(text.slice(end, match.index));
    nodes.push(code === undefined ? element("em", {}, emphasis) : element("code", {}, code));
    end = match.index + whole.length;
  }
  return [...nodes, text.slice(end)];
}

/** Text without the marks of `code` and *emphasis*, for a place that takes no elements. */
export function unmarked(text) {
  return text.replace(MARKUP, (_, code, emphasis) => code ?? emphasis);
}

/** A paragraph for each part of a text between empty lines. */
export function paragraphs(text, tag) {
  const parts = text.trim().split(/\n\s*\n/);
  return parts.map((part) => element(tag, { class: "attn-paragraph" }, ...inline(part)));
}
