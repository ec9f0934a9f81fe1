/* Covers what gives a prediction away until its reader has committed, or presses the cover.

   The page comes with all of it open, so that it can be read where no script runs; each cover closes
   as soon as it has arrived. The widgets' host tells which predictions are committed, at the start
   too: a reader's answer may have been kept. All covers of one prediction open together. Nothing is
   covered for a reader who comes by a link to a place on the page or from the search, and for one
   who has pressed as many covers as show that they read without predicting; paper shows all. What
   was pressed stays open over a reload. */
(() => {
  const SELECTOR = ".course-cover";
  const ALL = "all";
  const ENOUGH = 3;
  const LAST = "Press to see this and all other answers of the page";
  const KEY = `course-uncovered ${location.pathname}`;
  const committed = new Set(); // the models of predictions
  const pressed = new Set(kept()); // such models, or ALL

  /** What was pressed on this page before it was loaded again. */
  function kept() {
    try {
      const found = JSON.parse(sessionStorage.getItem(KEY));
      return Array.isArray(found) ? found : [];
    } catch {
      return [];
    }
  }
  function press(model) {
    pressed.add(model);
    if (pressed.size >= ENOUGH) pressed.add(ALL);
    sessionStorage.setItem(KEY, JSON.stringify([...pressed]));
    update();
  }

  function update() {
    for (const cover of document.querySelectorAll(SELECTOR)) {
      const { until } = cover.dataset;
      const covers = !(committed.has(until) || pressed.has(until) || pressed.has(ALL));
      cover.toggleAttribute("data-covers", covers);
      const [button, answer] = cover.children;
      if (!answer) continue; // it is still arriving
      button.hidden = !covers;
      if (pressed.size === ENOUGH - 1) button.firstElementChild.textContent = LAST;
      answer.inert = covers && !cover.closest("figure"); // a drawing's alternative text stands
    }
  }

  document.addEventListener("course-committed", ({ detail: { model, isCommitted } }) => {
    if (isCommitted) committed.add(model);
    else committed.delete(model);
    update();
  });
  document.addEventListener("click", ({ target }) => {
    const cover = target.closest(`${SELECTOR} > button`)?.parentElement;
    if (!cover) return;
    press(cover.dataset.until);
    const [, answer] = cover.children;
    answer.tabIndex = -1; // the keyboard goes on from what it has opened
    answer.focus({ preventScroll: true });
  });

  const [visit] = performance.getEntriesByType("navigation"); // its name has `#:~:text=`, too
  const isSearched = "searched" in document.documentElement.dataset; // see layout.html
  if (visit.type === "navigate" && (visit.name.includes("#") || isSearched)) press(ALL);
  const arriving = new MutationObserver(update);
  arriving.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => {
    arriving.disconnect();
    update();
  });
})();
