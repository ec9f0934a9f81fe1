/* Keeps what a reader has predicted and answered in their browser, and says in the sidebar how much.

   A widget whose module exports `isDone` and whose state has the mark of what it asks (`_asked`, see
   course/predictions.py) gets back what was given to it, before it is drawn. What was kept is read
   as carefully as a widget's state: where storage is denied, or holds something damaged, foreign or
   of an older edition, all is as if it were empty. Where it is full, what was kept before is read,
   and a sentence says that what is done now isn't kept. Other tabs of the site follow, and so does
   a page that comes back from the browser's history. */
(() => {
  const page = document.currentScript.dataset.page;
  const asked = globalThis.courseAsked ?? {}; // page -> {"predictions": marks, "exercises on the page": marks}
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  const PREFIX = `course ${root.pathname} `; // one browser may keep several sites of one address
  const keyOf = (ofPage, mark) => `${PREFIX}${ofPage} ${mark}`;
  const FULL =
    "The storage of this browser is full: what you answer now lasts until you leave the page.";

  /** What `use(localStorage)` returns, or nothing where it is denied, full, or not the real one. */
  function stored(use) {
    try {
      return localStorage instanceof Storage ? use(localStorage) : undefined;
    } catch {
      return undefined;
    }
  }
  /** The keys of this site that have a value. */
  function keys() {
    return stored((store) => Object.keys(store).filter((key) => key.startsWith(PREFIX))) ?? [];
  }
  /** The text that is kept for a key; null if none is, nothing where none can be. */
  function textOf(key) {
    return stored((store) => store.getItem(key));
  }
  /** Keep a text for a key, or none; returns whether storage is too full for it. */
  function write(key, text) {
    if (text === null) stored((store) => store.removeItem(key));
    else stored((store) => Reflect.set(store, key, text)); // setItem hides failure: storage.js
    const found = textOf(key);
    return found !== undefined && found !== text;
  }
  /** What is kept for a key: {values, isDone}; null if nothing is, or nothing that can be read. */
  function read(key) {
    const kept = stored((store) => JSON.parse(store.getItem(key)));
    const isKept = typeof kept?.isDone === "boolean" && kept.values instanceof Object;
    return isKept ? kept : null;
  }

  const widgets = []; // of this page: {key, restore, follow}
  const places = new Map(); // model -> where it stands
  const unkept = new Set(); // keys of answers for which there was no room

  /** Give a model back what was kept of it, and keep it from now on. */
  function keep(model, code) {
    const mark = model.get("_asked");
    if (mark === undefined || code.isDone === undefined) return;
    const key = keyOf(page, mark);
    const earlierKey = keyOf(page, model.get("_earlier_mark"));
    const names = model.get("kept");
    const untouched = Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const inText = (values) => JSON.stringify(names.map((name) => values[name]));
    let isRestoring = false;
    let known; // the text that was kept when this was last read or written
    const note = element("p", { className: "course-unkept" });
    note.setAttribute("role", "status");

    /** Say below the widget that its answer isn't kept, as long as it isn't. */
    function tell(isFull) {
      if (isFull) unkept.add(key);
      else unkept.delete(key);
      if (!isFull) return note.remove();
      if (!note.isConnected) places.get(model)?.after(note);
      note.textContent = FULL;
    }
    function set(values) {
      isRestoring = true;
      for (const name of names) model.set(name, values[name]);
      isRestoring = false;
    }
    function isSound(kept) {
      try {
        const get = (name) => (names.includes(name) ? kept.values[name] : model.get(name));
        code.readState({ get });
        return code.isDone({ get }) === kept.isDone;
      } catch {
        return false;
      }
    }
    function restore() {
      const kept = read(key);
      const isUsed = isSound(kept);
      if (!isUsed) write(key, null);
      known = textOf(key);
      tell(false);
      set(isUsed ? kept.values : untouched);
    }
    function follow() {
      if (textOf(key) !== known) restore();
    }
    function save() {
      if (isRestoring) return;
      const values = Object.fromEntries(names.map((name) => [name, model.get(name)]));
      const isUntouched = inText(values) === inText(untouched);
      const text = isUntouched ? null : JSON.stringify({ values, isDone: code.isDone(model) });
      tell(write(key, text));
      known = textOf(key);
      clearing?.rest();
      showProgress();
    }
    const earlier = textOf(earlierKey);
    write(earlierKey, null); // first: a storage that is full has room for one of both
    if (earlier && !textOf(key)) write(key, earlier);
    restore();
    for (const name of names) model.on(`change:${name}`, save);
    widgets.push({ key, restore, follow });
  }

  function element(tag, attributes, ...children) {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  }

  /** "3 of 9 predictions, 2 of 6 exercises on the page"; nothing as long as none is done. */
  function wordsOn(ofPage) {
    const counts = Object.entries(asked[ofPage]).map(([what, marks]) => {
      const done = marks.filter((mark) => read(keyOf(ofPage, mark))?.isDone).length;
      return { done, words: `${done} of ${marks.length} ${what}` };
    });
    if (!counts.some(({ done }) => done > 0)) return "";
    return counts.map(({ words }) => words).join(", ");
  }

  const lines = new Map(); // page -> its line in the sidebar
  let clearing = null;

  /** Put a line below each link of the sidebar to a page that asks something, and a button. */
  function findPlaces() {
    const links = [...document.querySelectorAll(".bd-sidebar-primary nav.bd-links a")];
    for (const ofPage of Object.keys(asked)) {
      const { pathname } = new URL(`${ofPage}.html`, root);
      const isTo = (link) =>
        ofPage === page ? link.getAttribute("href") === "#" : link.pathname === pathname;
      const line = element("span", { className: "course-progress" });
      const link = links.find(isTo);
      (link?.parentElement.querySelector(".course-minutes") ?? link)?.after(line);
      lines.set(ofPage, line);
    }
    clearing = createClearing();
    document.querySelector(".bd-sidebar-primary nav.bd-links")?.append(clearing.node);
  }

  /** A button that clears all after a question. */
  function createClearing() {
    const words = element("p", { tabIndex: -1 });
    words.setAttribute("role", "status");
    const button = (text, onclick) =>
      element("button", { type: "button", className: "btn btn-sm", onclick }, text);
    const ask = button("Clear my answers", () => {
      words.textContent = "Clear what you answered on all pages?";
      node.replaceChildren(words, yes, no);
      no.focus();
    });
    const yes = button("Yes, clear", () => {
      for (const key of keys()) stored((store) => store.removeItem(key));
      for (const { restore } of widgets) restore();
      showProgress();
      node.hidden = false;
      words.textContent = "Your answers are cleared.";
      node.replaceChildren(words);
      words.focus();
    });
    const no = button("No, keep", () => {
      rest();
      ask.focus();
    });
    const node = element("div", { className: "course-kept" });
    node.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && no.isConnected) no.click();
    });
    function rest() {
      const isFull = unkept.size > 0;
      words.textContent = isFull ? FULL : "Your answers are kept in this browser alone.";
      node.replaceChildren(words, ask);
    }
    rest();
    return { node, rest };
  }

  function showProgress() {
    for (const [ofPage, line] of lines) line.textContent = wordsOn(ofPage);
    if (clearing) clearing.node.hidden = keys().length === 0 && unkept.size === 0;
  }

  /** Forget what this page asks no more, and pages that ask nothing. */
  function forgetOldEditions() {
    if (globalThis.courseAsked === undefined) return;
    const current = Object.values(asked[page] ?? {}).flatMap((marks) =>
      marks.map((mark) => keyOf(page, mark)),
    );
    const others = Object.keys(asked).filter((ofPage) => ofPage !== page);
    const isWanted = (key) =>
      current.includes(key) || others.some((ofPage) => key.startsWith(keyOf(ofPage, "")));
    for (const key of keys()) if (!isWanted(key)) stored((store) => store.removeItem(key));
  }

  addEventListener("load", () => {
    forgetOldEditions(); // now that answers of the last edition have been taken over
    showProgress();
  });
  /** Show what is kept now, perhaps by another page or tab. */
  function followAll() {
    for (const { follow } of widgets) follow();
    clearing?.rest(); // what it says of this page's answers may no longer be so
    showProgress();
  }
  globalThis.courseProgress = { keep, standsAt: (model, place) => places.set(model, place) };
  addEventListener("storage", followAll);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) followAll();
  });
  document.addEventListener(
    "readystatechange",
    () => {
      findPlaces();
      showProgress();
    },
    { once: true },
  );
})();
