/* What scrolls sideways inside its own box (code, tables, formulas, drawings on a phone) can be
   reached and scrolled by keyboard: it becomes a stop of the Tab key while it is too wide. */
(() => {
  const SCROLLERS = "pre, table, mjx-container, .math, .drawing, .output, .pst-scrollable-table-container";

  function update() {
    for (const box of document.querySelectorAll(`article :is(${SCROLLERS})`)) {
      const scrolls =
        box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
      if (scrolls && box.tabIndex < 0) box.tabIndex = 0;
      else if (!scrolls && box.tabIndex === 0) box.removeAttribute("tabindex");
    }
  }

  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise; // formulas have their width only then
    update();
    addEventListener("resize", update);
    document.addEventListener("toggle", update, { capture: true }); // a fold was opened
  });
})();
