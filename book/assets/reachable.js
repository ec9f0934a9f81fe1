/* What is wider than the page (code, tables, formulas, drawings on a phone) scrolls inside its own
   box, and such a box can be reached and scrolled by keyboard: it is a stop of the Tab key while
   it is too wide.

   Boxes are looked at once the browser has laid them out anyway: at first, and when their size
   changes, with the window or because a fold around them opens. All are read before one is changed,
   for what is read after a change costs a layout of the page.

   What the theme's own buttons lack for the keyboard is given to them, too. */
(() => {
  const SCROLLERS = "pre, table, .drawing, .output, .pst-scrollable-table-container, .math";

  function isTooWide(box) {
    const scrolls = getComputedStyle(box).overflowX !== "visible";
    return scrolls && box.scrollWidth > box.clientWidth + 1;
  }

  function update(entries) {
    const read = entries.map(({ target }) => [target, isTooWide(target)]);
    for (const [box, tooWide] of read) {
      if (tooWide) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }

  // The theme takes the focus from buttons that are pressed, so that a mouse leaves no name beside them.
  const BLURRED = ".theme-switch-button, .search-button, .primary-toggle, .secondary-toggle";
  for (const button of document.querySelectorAll(BLURRED)) {
    const blur = button.blur.bind(button);
    button.blur = () => button.matches(":focus-visible") || blur();
  }

  addEventListener("load", async () => {
    for (const button of document.querySelectorAll(".admonition-title > .toggle-button"))
      button.ariaLabel = `Show or hide: ${button.parentElement.textContent.trim()}`;
    await document.fonts.ready; // formulas have their final width only with their font
    const observer = new ResizeObserver(update);
    for (const box of document.querySelectorAll(`article :is(${SCROLLERS})`)) observer.observe(box);
  });
})();
