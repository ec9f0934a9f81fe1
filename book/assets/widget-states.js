/* Lets a reader send the state of an interactive figure, keep it over a reload, begin anew, and see
   it on the whole screen.

   A figure's state are the traits that a reader moves (`_moved`, see course/widgets.py).
   A link to it ends with "#figure-ID-MARK=VALUES": which figure of the page, a mark of what it
   shows, so that a link of an older edition isn't taken for one of today's, and the values as JSON
   in base64. Some figures have an earlier mark, too, and follow links that have it. Where a figure
   trains models, its trait `digest` names the one that is shown, so links of other editions are
   followed, too: the figure itself says whether it trains the same model. Links that are older than a
   trait of YOUNGER are followed as well. All that comes from an
   address or a browser's storage is read as carefully as a widget's saved state; what can't be used
   is refused above the figure, which stays at its start. */
(() => {
  const page = document.currentScript.dataset.page;
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  const LINK = /^#figure-([0-9a-z]+)(?:-([0-9a-f]+)=(.*))?/s;
  const LONGEST = 8000; // characters of a link's values
  const YOUNGER = { digest: "", forbidden: "", forbidden_in: null }; // and what they are without it
  const EARLIER =
    "The link belongs to an earlier edition of the course, whose models had other first numbers.";
  const [{ type: arrival } = {}] = performance.getEntriesByType("navigation");
  const isBack = arrival === "reload" || arrival === "back_forward";
  const figures = new Map(); // id -> what is known of it

  /** Values as a text for an address; bytes become {base64: ...}. */
  function packed(values) {
    const json = JSON.stringify(values, (_, value) => {
      if (!ArrayBuffer.isView(value)) return value;
      const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
      return { base64: btoa(String.fromCharCode(...bytes)) };
    });
    const base64 = btoa(String.fromCharCode(...new TextEncoder().encode(json)));
    return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  }
  const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  function unpacked(text) {
    const json = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
    const decoder = new TextDecoder("utf-8", { fatal: true });
    return JSON.parse(decoder.decode(json), (_, value) =>
      typeof value?.base64 === "string" ? new DataView(bytesOf(value.base64).buffer) : value,
    );
  }

  /** What kind of thing a trait holds: a value of another kind is never right. */
  function kindOf(value) {
    if (ArrayBuffer.isView(value)) return "bytes";
    return Array.isArray(value) ? "list" : typeof value;
  }

  /** The values in a text, or why they can't be used. */
  function readValues(text, { model, code, names, start }) {
    if (text.length > LONGEST) return { problem: "it is too long" };
    try {
      const given = unpacked(text);
      const isEarlier = names.includes("digest") && !Object.hasOwn(given, "digest");
      const younger = Object.entries(YOUNGER).filter(([name]) => names.includes(name));
      const values = { ...Object.fromEntries(younger), ...given };
      const known = Object.keys(values);
      if (known.length !== names.length || !names.every((name) => Object.hasOwn(values, name)))
        throw new Error("other traits");
      for (const name of names) {
        const isChosen = start[name] === null || values[name] === null; // one of several, or none
        if (!isChosen && kindOf(values[name]) !== kindOf(start[name])) throw new Error(name);
      }
      code.readState({ get: (name) => (names.includes(name) ? values[name] : model.get(name)) });
      return { values, warning: isEarlier && values.trained ? EARLIER : "" };
    } catch {
      return { problem: "it is damaged" };
    }
  }

  /** What the address says of a figure: values, a problem, or nothing. */
  function linked(figure) {
    const [, id, mark, text] = location.hash.match(LINK) ?? [];
    if (id !== figure.id) return null;
    if (mark === undefined) return { problem: "it is damaged" };
    const isKnown = [figure.mark, figure.earlierMark].includes(mark);
    const isFollowed = isKnown || figure.names.includes("digest");
    const found = isFollowed ? readValues(text, figure) : {};
    if (isKnown || found.values) return found;
    return { problem: "it belongs to another edition of this page" };
  }

  const keyOf = ({ id, mark }) => `course-state ${root.pathname} ${page} ${id}-${mark}`;
  function kept(figure) {
    const text = sessionStorage.getItem(keyOf(figure));
    return text === null ? null : readValues(text, figure);
  }
  const now = ({ model, names }) =>
    Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const isMoved = (figure) => packed(now(figure)) !== packed(figure.start);

  /** Give a model the state of the link or of before the reload, ahead of its first drawing. */
  function begin(id, model, code) {
    const names = model.get("_moved");
    if (names === undefined) return;
    const figure = { id: Number.parseInt(id, 16).toString(36), model, code, names, places: [] };
    figure.mark = model.get("_mark");
    figure.earlierMark = model.get("_earlier_mark");
    figure.start = now(figure);
    figures.set(model, figure);
    const [link, before] = [linked(figure), kept(figure)];
    const found = isBack && before?.values ? before : (link ?? before);
    if (found?.values) model.become(found.values);
    tellOf(figure, (found === link && link) || {});
  }

  /** Remember what is wrong with the link that a figure follows, if there is one. */
  function tellOf(figure, { problem, warning = "" }) {
    figure.told = problem ? `The link can't be used: ${problem}. This is the start.` : warning;
  }

  function element(tag, attributes, ...children) {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  }

  /** Put the icons into a figure's corner; `redraw` draws it anew from its model. */
  function standsAt(model, place, redraw) {
    const figure = figures.get(model);
    if (figure === undefined) return;
    const said = element("span");
    said.setAttribute("role", "status");
    const button = (ariaLabel, icon, onclick) => {
      const sign = element("i", { className: `fas ${icon}`, ariaHidden: "true" });
      return element("button", { type: "button", ariaLabel, title: ariaLabel, onclick }, sign);
    };
    const send = button("Link to this state", "fa-link", async () => {
      const hash = `#figure-${figure.id}-${figure.mark}=${packed(now(figure))}`;
      if (hash.length > LONGEST) {
        said.textContent = "This state is too long for a link.";
        return;
      }
      history.replaceState(null, "", hash);
      try {
        await navigator.clipboard.writeText(location.href);
        said.textContent = "Copied.";
      } catch {
        said.textContent = "The link stands in the address bar.";
      }
    });
    const anew = button("Forget my changes", "fa-rotate-left", async () => {
      await become(figure, figure.start);
      for (const fold of place.querySelectorAll(".attn-more")) fold.open = true; // it holds the row
      said.textContent = "As at the start.";
      send.focus(); // this button goes
    });
    const whole = button("Full screen", "fa-expand", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else place.requestFullscreen();
    });
    whole.hidden = !document.fullscreenEnabled;
    const row = element("div", { className: "course-states" }, said, anew, send, whole);
    const refusal = element("p", { className: "course-refusal" });
    refusal.setAttribute("role", "status");
    figure.places.push({ redraw: () => redraw().then(() => place.append(row)), show, goTo });

    function show() {
      anew.hidden = !isMoved(figure);
      refusal.textContent = figure.told;
      if (figure.told) place.before(refusal);
      else refusal.remove();
    }
    /** A figure is read from its top, and a refusal stands above it. */
    function goTo() {
      for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details"))
        fold.open = true;
      (figure.told ? refusal : place).scrollIntoView();
    }
    for (const name of figure.names) {
      model.on(`change:${name}`, () => {
        if (name !== "digest") figure.told = ""; // which a training sets, and no reader
        said.textContent = "";
        show();
      });
    }
    place.append(row); // last, so that its keys come after the figure's own
    show();
    if (location.hash.match(LINK)?.[1] === figure.id) arriveBy(goTo);
  }

  /** Go there, and once more when all above has its size, if the reader hasn't moved by then. */
  function arriveBy(goTo) {
    goTo();
    addEventListener("load", goTo, { once: true });
    for (const moved of ["wheel", "pointerdown", "keydown"])
      addEventListener(moved, () => removeEventListener("load", goTo), { once: true });
  }

  /** Set all traits of a figure at once, and draw it anew wherever it stands. */
  function become(figure, values) {
    figure.model.become(values);
    return Promise.all(
      figure.places.map(({ redraw, show }) => {
        show();
        return redraw();
      }),
    );
  }

  addEventListener("hashchange", () => {
    for (const figure of figures.values()) {
      const found = linked(figure);
      if (!found) continue;
      tellOf(figure, found);
      become(figure, found.values ?? figure.start);
      figure.places[0]?.goTo();
    }
  });
  addEventListener("pagehide", () => {
    for (const figure of figures.values()) {
      if (isMoved(figure)) sessionStorage.setItem(keyOf(figure), packed(now(figure)));
      else sessionStorage.removeItem(keyOf(figure));
    }
  });
  globalThis.courseStates = { begin, standsAt };
})();
