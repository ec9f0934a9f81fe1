/* A page is printed in its light colors, whichever it is read in, and with its folds open, also those
   over what answers a prediction, and its explanation: it is the lesson. But not those over code that
   the text doesn't speak of; and a solution is printed only if its reader has opened it (paper.css), so
   that a handout's exercises are still to be solved.

   Figures have a light copy that the dark theme hides, and that a browser hasn't loaded then. So
   these are asked for as soon as printing begins. And paper is wide: it shows no drawing that was
   made for phones, whatever window it is printed from. All is as before when it ends. */
(() => {
  const { dataset } = document.documentElement;
  const FOLDED = "article details:not([open], .hide, .attn-widget details)";
  let restore = () => {};

  addEventListener("beforeprint", () => {
    const { theme } = dataset;
    const opened = [...document.querySelectorAll(FOLDED)];
    const explained = [...document.querySelectorAll(".attn-explanation[hidden]")];
    const medias = [...document.querySelectorAll("article source")].map((source) => [
      source,
      source.media,
    ]);
    restore = () => {
      dataset.theme = theme;
      for (const fold of opened) fold.open = false;
      for (const explanation of explained) explanation.hidden = true;
      for (const [source, media] of medias) source.media = media;
    };
    dataset.theme = "light";
    for (const fold of opened) fold.open = true;
    for (const explanation of explained) explanation.hidden = false;
    for (const [source] of medias) source.media = "not all";
    for (const image of document.querySelectorAll("img.only-light")) image.loading = "eager";
  });
  addEventListener("afterprint", () => restore());
})();
