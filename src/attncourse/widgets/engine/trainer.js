// The page's side of a training: it starts a worker, and hears of it.

import { MODULES } from "./worker_code.js";

let address = null; // of the workers' code, the same for all

/**
 * Start a training in a worker of its own. `message` is what worker.js takes as "start"; `on` has
 * functions that are told {steps, ...} as it goes: losses, evaluation, maps, done. `on.error` is told
 * once, in words, why there is no training any more.
 *
 * Returns {pause, resume, stop, ask, close}. ask(question, about) promises what worker.js answers. A
 * training that is done can still be asked; `close` ends its worker.
 */
export function startTraining(message, on) {
  const waiting = new Map(); // questions by their number: {resolve, reject}
  let asked = 0;
  let ended = null; // why there is no worker
  let worker = null;

  function end(reason) {
    if (ended !== null) return;
    ended = new Error(reason);
    worker?.terminate();
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  }
  function fail(reason) {
    if (ended !== null) return;
    end(reason);
    on.error?.(reason);
  }
  function hear({ kind, ...content }) {
    if (kind === "error") return fail(content.message);
    if (kind !== "reply") return on[kind]?.(content);
    const { resolve, reject } = waiting.get(content.id);
    waiting.delete(content.id);
    if ("error" in content) reject(new Error(content.error));
    else resolve(content.reply);
  }
  const tell = (content) => ended === null && worker?.postMessage(content);

  try {
    address ??= createAddress();
    worker = new Worker(address);
    worker.onmessage = ({ data }) => hear(data);
    worker.onerror = (event) => {
      event.preventDefault();
      fail(`The worker broke down: ${event.message ?? "it could not be started"}`);
    };
  } catch (error) {
    // Told later, as everything is: the caller doesn't have yet what this function returns.
    const reason = `Models train in a Web Worker, and this browser starts none: ${error.message}`;
    queueMicrotask(() => fail(reason));
  }
  tell({ ...message, kind: "start" });
  return {
    pause: () => tell({ kind: "pause" }),
    resume: () => tell({ kind: "resume" }),
    stop: () => tell({ kind: "stop" }),
    ask(question, about = {}) {
      return new Promise((resolve, reject) => {
        if (ended !== null) return reject(ended);
        waiting.set(++asked, { resolve, reject });
        tell({ kind: "ask", id: asked, question, ...about });
      });
    },
    close: () => end("The training was closed."),
  };
}

/** An address of code that is made of the page's own modules: a page from a folder can load no file. */
function createAddress() {
  const functions = MODULES.map(
    ([name, make]) => `attnModules[${JSON.stringify(name)}] = (${make})({});`,
  );
  const start = `attnModules[${JSON.stringify(MODULES.at(-1)[0])}].run(self);`;
  const code = ["const attnModules = {};", ...functions, start].join("\n");
  return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
}
