/* What is wider than the page (code, tables, formulas, drawings on a phone) scrolls inside its own
   box, and such a box can be reached and scrolled by keyboard: it is a stop of the Tab key while
   it is too wide. */
(() => {
  const SCROLLERS = "pre, table, .drawing, .output, .pst-scrollable-table-container, .math";

  function reach(box, isTooWide) {
    if (isTooWide) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }

  function update() {
    for (const box of document.querySelectorAll(`article :is(${SCROLLERS})`)) {
      const scrolls = getComputedStyle(box).overflowX !== "visible";
      reach(box, scrolls && box.scrollWidth > box.clientWidth + 1);
    }
  }

  addEventListener("load", async () => {
    await document.fonts.ready; // formulas have their final width only with their font
    update();
    addEventListener("resize", update);
    document.addEventListener("toggle", update, { capture: true }); // a fold was opened
  });
})();
