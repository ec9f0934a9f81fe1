/* Closes the folds over what answers a prediction until its reader has committed.

   The page comes with them open, so that all can be read where no script runs; each is closed as
   soon as it has arrived. The widgets' host tells which predictions are committed, at the start too:
   a reader's answer may have been kept. A fold that a reader has opened by hand stays open over
   a reload. A link into a fold opens it (not every browser sees to that), and paper shows what is in
   it. Where a browser finds words in a fold, it opens it itself. */
(() => {
  const SELECTOR = "details.course-cover";
  const committed = new Set(); // the models of predictions
  const keyOf = (fold) => `course-open ${location.pathname} ${fold.dataset.until}`;

  /** What `use(sessionStorage)` returns, or nothing where it is denied or full. */
  function stored(use) {
    try {
      return use(sessionStorage);
    } catch {
      return undefined;
    }
  }

  function update() {
    for (const fold of document.querySelectorAll(SELECTOR)) {
      const covers = !committed.has(fold.dataset.until);
      if (fold.hasAttribute("data-covers") === covers) continue; // it may be open by hand
      fold.toggleAttribute("data-covers", covers);
      if (!covers) stored((store) => store.removeItem(keyOf(fold)));
      fold.open = !covers || stored((store) => store.getItem(keyOf(fold))) === "open";
    }
  }

  /** What the address leads to; nothing if it can't be read. */
  function hashed() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  }

  function reveal() {
    const target = document.getElementById(hashed());
    const fold = target?.closest(SELECTOR);
    if (!fold || fold.open) return;
    fold.open = true;
    target.scrollIntoView();
  }

  document.addEventListener("course-committed", ({ detail: { model, isCommitted } }) => {
    if (isCommitted) committed.add(model);
    else committed.delete(model);
    update();
  });
  document.addEventListener("click", ({ target }) => {
    const fold = target.closest(`${SELECTOR}[data-covers] > summary`)?.parentElement;
    if (!fold) return;
    if (fold.open) stored((store) => store.removeItem(keyOf(fold)));
    else stored((store) => store.setItem(keyOf(fold), "open"));
  });
  const arriving = new MutationObserver(update);
  arriving.observe(document, { childList: true, subtree: true });
  document.addEventListener(
    "readystatechange",
    () => {
      arriving.disconnect();
      update();
      reveal();
    },
    { once: true },
  );
  addEventListener("hashchange", reveal);

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(`${SELECTOR}:not([open])`)];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
})();
