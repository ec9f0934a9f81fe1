// Steps that a reader takes one by one, or that follow by themselves.

import { write } from "./dom.js";
import { createButton } from "./parts.js";

const PAUSE = 2500; // milliseconds for a step, when steps follow by themselves

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
