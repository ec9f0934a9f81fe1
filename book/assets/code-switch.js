/* The switch Reading / Coding above a page: whether it is read, or its code written and run.

   Reading folds code and exercises that are answered in code; Coding opens them, and shows what only
   coders need (code-switch.css). On the first page that a reader opens a line says so, until the switch
   is used. A link to a place in a fold opens it, and who comes from the search finds all exercises open.
   A reader's choice is kept in their browser; other tabs of the site follow it. What they read stays
   where it is while code above it comes or goes. See course/exercises.py. */
(() => {
  const EXERCISE = "details.exercise";
  const FOLDS = `:is(.course-code, .tag_hide-input) > details.above-input, ${EXERCISE}, .course-goals`;
  const OPENING = ".bd-article > section > .cell:is(:has(figure), :has(+ .cell figure))";
  const FOR_CODERS = `${OPENING} > details, .course-doubled`; // as in code-switch.css
  const { dataset } = document.documentElement;
  const root = new URL(dataset.content_root ?? "./", location.href);
  const KEY = `course-code ${root.pathname}`; // one browser may keep several sites of one address
  const OPEN = "open";
  const isSearched = "searched" in dataset; // see layout.html

  const chosen = () => localStorage.getItem(KEY);
  const isCoding = () => chosen() === OPEN;
  const folds = () => [...document.querySelectorAll(FOLDS)];

  function element(tag, attributes, ...children) {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  }
  const button = element(
    "button",
    {
      type: "button",
      className: "btn btn-sm course-code-switch",
      title: "Reading folds code, and exercises that need Python. Coding opens them on all pages.",
    },
    element("span", {}, "Reading"),
    element("span", {}, "Coding"),
  );
  button.setAttribute("role", "switch");
  button.setAttribute("aria-label", "Open the code of all pages");
  const words = element(
    "p",
    { className: "course-code-words" },
    "Above: ",
    element("strong", {}, "Reading"),
    " folds code, and exercises that need Python. ",
    element("strong", {}, "Coding"),
    " opens them on all pages.",
  );

  function update(changed = folds()) {
    dataset.courseCode = isCoding() ? OPEN : "folded";
    button.setAttribute("aria-checked", isCoding());
    for (const fold of changed) fold.open = isCoding() || (isSearched && fold.matches(EXERCISE));
    if (chosen() !== null) words.remove();
    else if (!words.isConnected) document.querySelector(".bd-article")?.prepend(words);
  }

  /** Do something that moves the page, and scroll so that what is read doesn't move. */
  function inPlace(change) {
    const { style } = document.documentElement;
    const parts = [...document.querySelectorAll("article :is(p, h1, h2, h3, figure, pre, li)")];
    const isPast = (part) => part.getBoundingClientRect().bottom < innerHeight / 3; // eyes are there
    const read = parts.find(
      (part) => part.checkVisibility() && !isPast(part) && !part.closest(FOR_CODERS),
    );
    const before = read?.getBoundingClientRect().top;
    style.overflowAnchor = "none"; // or a browser that does it too would do it twice
    change();
    const lineOfFold = () => folds().find((fold) => fold.contains(read)).firstElementChild;
    const stays = !read || read.checkVisibility() ? read : lineOfFold();
    if (stays) scrollBy({ top: stays.getBoundingClientRect().top - before, behavior: "instant" });
    requestAnimationFrame(() =>
      requestAnimationFrame(() => style.removeProperty("overflow-anchor")),
    );
  }

  /** Open the folds around the place that an address ends with; returns it if there were some. */
  function reveal({ hash }) {
    const place = document.getElementById(hash.slice(1));
    const closed = [...document.querySelectorAll("details:not([open])")];
    const around = closed.filter((fold) => fold.contains(place));
    for (const fold of around) fold.open = true;
    return around.length > 0 ? place : null;
  }
  const goThere = () => reveal(location)?.scrollIntoView();

  button.addEventListener("click", () => {
    localStorage.setItem(KEY, isCoding() ? "folded" : OPEN);
    inPlace(update);
  });
  addEventListener("storage", ({ key }) => {
    if (key === KEY || key === null) inPlace(update);
  });
  addEventListener("pagehide", () => {
    if (words.isConnected) localStorage.setItem(KEY, "folded"); // it has been told
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted && isCoding() !== (dataset.courseCode === OPEN)) inPlace(update);
  });
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[href*='#']"); // also one that was followed before
    if (link?.pathname === location.pathname) reveal(link);
  });
  addEventListener("hashchange", goThere);

  const met = new Set();
  function meet() {
    const arrived = folds().filter((fold) => !met.has(fold));
    for (const fold of arrived) met.add(fold);
    update(arrived);
  }
  const arriving = new MutationObserver(meet);
  arriving.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => {
    arriving.disconnect();
    meet();
    document.querySelector(".article-header-buttons").prepend(button);
    goThere();
  });
})();
