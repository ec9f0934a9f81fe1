/* A page is printed in its light colors, whichever it is read in, and with its folds open; but not
   those over code that the text doesn't speak of.

   Figures have a light copy that the dark theme hides, and that a browser hasn't loaded then. So
   these are asked for as soon as printing begins. All is as before when it ends. */
(() => {
  const { dataset } = document.documentElement;
  const FOLDED = "article details:not([open], .hide, .attn-widget details)";
  let restore = () => {};

  addEventListener("beforeprint", () => {
    const { theme } = dataset;
    const opened = [...document.querySelectorAll(FOLDED)];
    restore = () => {
      dataset.theme = theme;
      for (const fold of opened) fold.open = false;
    };
    dataset.theme = "light";
    for (const fold of opened) fold.open = true;
    for (const image of document.querySelectorAll("img.only-light")) image.loading = "eager";
  });
  addEventListener("afterprint", () => restore());
})();
