/* Runs the course's widgets on a published page, where no kernel answers.

   The page carries the state of its widgets in one script element, and a small script element where
   each widget is to stand. For each widget this host makes a model with anywidget's interface (get,
   set, save_changes, on, off) and takes the widget's code: that of the course's widgets from the
   site's scripts, which stand before this one, that of any other from its own state. While the page
   is read, each widget is drawn where it stands.
   Where progress.js keeps what a reader did, or widget-states.js finds it in the page's address, a
   model gets that back before it is drawn.
   Views of one model share it, so they stay in sync. A widget that fails says so in its place; the
   rest of the page goes on. A classic script, because browsers refuse module scripts in pages that
   are opened from a folder; it comes after the state and isn't deferred, so that it starts early. */
(() => {
  const STATE = "application/vnd.jupyter.widget-state+json";
  const VIEW = "application/vnd.jupyter.widget-view+json";

  class Model {
    constructor(state) {
      this.state = state;
      this.listeners = new Map(); // event name -> set of callbacks
    }
    get(name) {
      return this.state[name];
    }
    set(name, value) {
      if (Object.is(this.state[name], value)) return;
      this.state[name] = value;
      this.emit(`change:${name}`, value);
      this.emit("change", value);
    }
    become(values) {
      Object.assign(this.state, values); // what draws it afterwards sees all of them
    }
    emit(event, value) {
      for (const callback of [...(this.listeners.get(event) ?? [])]) callback(this, value);
    }
    on(event, callback) {
      if (!this.listeners.has(event)) this.listeners.set(event, new Set());
      this.listeners.get(event).add(callback);
    }
    off(event, callback) {
      if (event === undefined) this.listeners.clear();
      else if (callback === undefined) this.listeners.delete(event);
      else this.listeners.get(event)?.delete(callback);
    }
    save_changes() {} // in a notebook this tells the kernel; here views share the model already
    send() {}
  }

  // Bytes travel beside the state, as base64 with the path at which they belong.
  function withBuffers({ state, buffers = [] }) {
    for (const { path, encoding, data } of buffers) {
      if (encoding !== "base64") throw new Error(`unknown encoding ${encoding}`);
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
      const owner = path.slice(0, -1).reduce((value, key) => value[key], state);
      owner[path.at(-1)] = new DataView(bytes.buffer);
    }
    return state;
  }

  const styles = new Set();
  function applyStyle(css) {
    if (!css || styles.has(css)) return;
    styles.add(css);
    document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  }

  // The course's widgets of one kind share their module, which holds nothing of any one of them.
  async function codeOf(model) {
    const name = model.get("_module");
    if (name !== undefined) {
      const code = globalThis.attnModules?.[`${name}/widget.js`];
      if (code === undefined) throw new Error(`this site has no code for ${name}`);
      return code;
    }
    const url = URL.createObjectURL(new Blob([model.get("_esm")], { type: "text/javascript" }));
    try {
      return await import(url);
    } finally {
      URL.revokeObjectURL(url);
    }
  }

  async function start(id, entry) {
    const model = new Model(withBuffers(entry));
    applyStyle(model.get("_css"));
    const code = await codeOf(model);
    let widget = code.default;
    if (typeof widget === "function") widget = await widget();
    await widget.initialize?.({ model });
    globalThis.courseProgress?.keep(model, code);
    globalThis.courseStates?.begin(id, model, code);
    return { model, widget };
  }

  function fail(place, error) {
    place.className = "course-widget-error";
    place.setAttribute("role", "alert");
    place.textContent = `This interactive figure could not be started: ${error.message}`;
    console.error(error);
  }

  // Other scripts of the page may wait until a reader has committed to an answer.
  function tellCommitment(place, id, model) {
    const detail = { model: id, isCommitted: Boolean(model.get("committed")) };
    place.dispatchEvent(new CustomEvent("course-committed", { bubbles: true, detail }));
  }

  let entries = {};
  let damage = null;
  try {
    const source = document.querySelector(`script[type="${STATE}"]`)?.textContent ?? "{}";
    entries = JSON.parse(source).state ?? {};
  } catch (error) {
    damage = error;
  }
  const started = new Map(); // model id -> promise of {model, widget}
  for (const [id, entry] of Object.entries(entries)) {
    if (!entry?.state?._esm && !entry?.state?._module) continue; // one without code, as of a layout
    started.set(id, start(id, entry));
    started.get(id).catch(() => {}); // told in the place of the widget
  }

  function draw(script) {
    const place = Object.assign(document.createElement("div"), { className: "course-widget" });
    script.after(place);
    (async () => {
      if (damage) throw damage;
      const id = JSON.parse(script.textContent).model_id;
      if (!started.has(id)) throw new Error("its state is not on this page");
      const { model, widget } = await started.get(id);
      globalThis.courseProgress?.standsAt(model, place);
      let end = await widget.render({ model, el: place });
      globalThis.courseStates?.standsAt(model, place, async () => {
        end?.();
        place.replaceChildren();
        end = await widget.render({ model, el: place });
      });
      model.on("change:committed", () => tellCommitment(place, id, model));
      tellCommitment(place, id, model);
    })().catch((error) => fail(place, error));
  }

  // A widget is drawn as soon as it is read: what stands below it is shown later, and never moves.
  const drawn = new Set();
  function drawRead() {
    for (const script of document.querySelectorAll(`script[type="${VIEW}"]`)) {
      const isRead = script.nextSibling || document.readyState !== "loading";
      if (!isRead || drawn.has(script)) continue;
      drawn.add(script);
      draw(script);
    }
  }
  const reader = new MutationObserver(drawRead);
  reader.observe(document, { childList: true, subtree: true });
  function end() {
    drawRead();
    reader.disconnect();
  }
  if (document.readyState !== "loading") end();
  else document.addEventListener("readystatechange", end, { once: true });
})();
