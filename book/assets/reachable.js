/* What is wider than the page (code, tables, formulas, drawings on a phone) scrolls inside its own
   box, and such a box can be reached and scrolled by keyboard: it is a stop of the Tab key while
   it is too wide. */
(() => {
  const SCROLLERS =
    "pre, table, .drawing, .output, .pst-scrollable-table-container, mjx-container[display='true']";

  function reach(box, isTooWide) {
    if (isTooWide) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }

  function update() {
    for (const formula of document.querySelectorAll("article span.math mjx-container")) {
      formula.classList.remove("too-wide");
      const room = formula.closest("p, li, td, th, dd, dt, h1, h2, h3, div").clientWidth;
      const isTooWide = formula.offsetWidth > room;
      formula.classList.toggle("too-wide", isTooWide);
      reach(formula, isTooWide);
    }
    for (const box of document.querySelectorAll(`article :is(${SCROLLERS})`)) {
      const scrolls = getComputedStyle(box).overflowX !== "visible";
      reach(box, scrolls && box.scrollWidth > box.clientWidth + 1);
    }
  }

  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise; // formulas have their width only then,
    await document.fonts.ready; // and their final one with their fonts
    update();
    addEventListener("resize", update);
    document.addEventListener("toggle", update, { capture: true }); // a fold was opened
  });
})();
