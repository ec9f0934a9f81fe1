/* Loads scripts that a page can do without until it stands: the buttons that copy code, and the marks
   on words that were searched for. Read with the others, they would keep back the first look at the
   page by a third. They come once all else is there and the browser has nothing to do; one after the
   other, for the buttons need what copies. */
(() => {
  const sources = document.currentScript.dataset.scripts.split(" ");
  const whenIdle = globalThis.requestIdleCallback ?? setTimeout; // which WebKit lacks

  function load() {
    for (const src of sources) {
      document.head.append(Object.assign(document.createElement("script"), { src, async: false }));
    }
  }
  addEventListener("load", () => whenIdle(load), { once: true });
})();
