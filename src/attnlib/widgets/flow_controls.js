// Flow's controls: which tokens, which head, and playing or going step by step.

import { times } from "./flow_numbers.js";
import { element, write } from "./shared/dom.js";
import { createButton, createSwatch } from "./shared/parts.js";
import { createToolbar } from "./shared/toolbar.js";

const PAUSE = 2500; // milliseconds for a step, when steps follow by themselves

/** A token to choose for each place. */
export function createSequence(tokens, choose) {
  const options = () => tokens.map((token, i) => element("option", { value: i }, token));
  const selects = tokens.map((_, place) => {
    const select = element("select", { "aria-label": `Token at place ${place}` }, ...options());
    select.addEventListener("change", () => choose(place, Number(select.value)));
    return select;
  });
  const node = element("div", { class: "attn-row", role: "group" }, ...selects);
  node.setAttribute("aria-label", "Tokens");
  const draw = (sequence) => selects.forEach((select, i) => (select.value = sequence[i]));
  return { node, draw };
}

/** Which head is shown where there is no room for all. */
export function createHeadChoice(count, choose) {
  const toolbar = createToolbar("Head", "attn-row attn-one-head");
  const buttons = times(count, (head) => createButton(`head ${head + 1}`, () => choose(head)));
  buttons.forEach((button, head) => button.prepend(createSwatch(head), " "));
  toolbar.show(buttons);
  return toolbar;
}

/** Play, one step on, one step back. `isLast()` tells whether there is no step to play. */
export function createPlayer({ isLast, start, go, told }) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let timer = null;
  const isPlaying = () => timer !== null;

  function stop() {
    clearInterval(timer);
    timer = null;
    told(false);
    write(play, "Play");
  }
  function turn() {
    if (!play.isConnected) return stop();
    go(1);
    if (isLast()) stop();
  }
  const play = createButton("Play", () => {
    if (isPlaying()) return stop();
    told(true);
    if (isLast()) start();
    timer = setInterval(turn, PAUSE);
    write(play, "Pause");
  });
  const [back, on] = [-1, 1].map((by) =>
    createButton(by < 0 ? "Back" : "Step", () => {
      stop();
      go(by);
    }),
  );
  const heed = () => {
    if (still.matches) stop();
    play.hidden = still.matches;
  };
  still.addEventListener("change", heed);
  heed();

  function draw(step) {
    back.setAttribute("aria-disabled", String(step === 0));
    on.setAttribute("aria-disabled", String(isLast()));
  }
  const end = () => {
    stop();
    still.removeEventListener("change", heed);
  };
  return { nodes: [back, on, play], draw, stop, end };
}
