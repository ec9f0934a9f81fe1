/* What the search shows: lessons first, the API last; in each, first whose title has all the words.
   Every result has the passage with most of them. Read after Sphinx's searchtools.js: search.html. */
const typed = () => new URLSearchParams(location.search).get("q").toLowerCase().trim().split(/\s+/);

const NO_TEXT = "script, style, .headerlink, .course-cover > button, .solution";

Scorer.score = ([page, title, , , score]) => {
  const isLesson = /^book\/L\d/.test(page);
  const isBeside = /^book\/Positions/.test(page); // it stands among the lessons
  const isApi = /^book\/api/.test(page);
  const isTitle = typed().every((word) => title.toLowerCase().includes(word));
  // Sphinx's own scores are at most 100.
  return score + (isLesson ? 2000 : isBeside ? 1900 : isApi ? 0 : 1000) + (isTitle ? 500 : 0);
};

/** An excerpt of the page's text, the first passage that has most of the words. */
Search.makeSearchSummary = (html, stems, anchor) => {
  const words = [...stems, ...typed()]; // the stem of "rotary" is "rotari"
  const page = new DOMParser().parseFromString(html, "text/html");
  const text = page.getElementById("course-text") ?? page.body;
  const place = (anchor && page.getElementById(anchor.slice(1))) || text;
  for (const part of text.querySelectorAll(NO_TEXT)) part.remove();
  const count = (passage) =>
    words.filter((word) => passage.textContent.toLowerCase().includes(word)).length;
  const meaning = place.closest("dt")?.nextElementSibling; // of a term of the glossary
  const passages = meaning ? [meaning] : [...place.querySelectorAll("p, li, dd, td, figcaption")];
  const best = Math.max(0, ...passages.map(count));
  const found = meaning || passages.find((passage) => best > 0 && count(passage) === best);
  if (!found) return document.createDocumentFragment();
  const said = found.textContent.replace(/\s+/g, " ").trim();
  const starts = words.map((word) => said.toLowerCase().indexOf(word));
  const first = Math.min(...starts.filter((start) => start >= 0));
  // Between two words.
  const begin = first < Infinity ? said.lastIndexOf(" ", first - 120) + 1 : 0;
  const end = begin + 240 < said.length ? said.lastIndexOf(" ", begin + 240) : said.length;
  const summary = document.createElement("p");
  summary.className = "context";
  summary.textContent =
    (begin ? "… " : "") + said.slice(begin, end) + (end < said.length ? " …" : "");
  return summary;
};

// A page that was opened from a folder may not read others.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
