/* The switch Reading / Coding above a page: whether the code of all pages is folded or open.

   A reader's choice is kept in their browser; other tabs of the site follow it. What they read stays
   where it is while code above it comes or goes. See the extension code_switch. */
(() => {
  const FOLDS = ":is(.course-code, .course-aside) > details.above-input";
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  const KEY = `course-code ${root.pathname}`; // one browser may keep several sites of one address
  const OPEN = "open";

  const isCoding = () => localStorage.getItem(KEY) === OPEN;
  const folds = () => document.querySelectorAll(FOLDS);

  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm course-code-switch";
  button.title = "Reading: code is folded. Coding: code is open. On all pages.";
  button.setAttribute("role", "switch");
  button.setAttribute("aria-label", "Open the code of all pages");
  for (const word of ["Reading", "Coding"]) {
    const part = document.createElement("span");
    part.textContent = word;
    button.append(part);
  }

  function update() {
    button.setAttribute("aria-checked", isCoding());
    for (const fold of folds()) fold.open = isCoding();
  }

  /** Do something that moves the page, and scroll so that what is read doesn't move. */
  function inPlace(change) {
    const { style } = document.documentElement;
    const parts = [...document.querySelectorAll("article :is(p, h1, h2, h3, figure, pre, li)")];
    const isPast = (part) => part.getBoundingClientRect().bottom < innerHeight / 3; // eyes are there
    const read = parts.find(
      (part) => part.checkVisibility() && !isPast(part) && !part.closest(FOLDS),
    );
    const before = read?.getBoundingClientRect().top;
    style.overflowAnchor = "none"; // or a browser that does it too would do it twice
    change();
    if (read) scrollBy({ top: read.getBoundingClientRect().top - before, behavior: "instant" });
    requestAnimationFrame(() =>
      requestAnimationFrame(() => style.removeProperty("overflow-anchor")),
    );
  }

  button.addEventListener("click", () => {
    localStorage.setItem(KEY, isCoding() ? "folded" : OPEN);
    inPlace(update);
  });
  addEventListener("storage", ({ key }) => {
    if (key === KEY || key === null) inPlace(update);
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) inPlace(update);
  });

  const arriving = new MutationObserver(() => {
    if (isCoding()) update();
  });
  arriving.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => {
    arriving.disconnect();
    update();
    document.querySelector(".article-header-buttons").prepend(button);
  });
})();
