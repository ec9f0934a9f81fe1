// Going through something step by step, or watching it go.

import { write } from "./dom.js";
import { createButton } from "./parts.js";

/**
 * Buttons for one step back, one on, and Play, `pause` milliseconds a step. `isLast()` returns
 * whether there is no step to play, `start()` goes to the first, `go(by)` by one;
 * `onPlayingChange(isPlaying)` is called at each beginning and end. Where motion is unwelcome there is
 * no Play, unless nothing moves in it.
 */
export function createPlayer({ pause, isLast, start, go, onPlayingChange, moves = true }) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let timer = null;
  const isPlaying = () => timer !== null;

  function stop() {
    clearInterval(timer);
    timer = null;
    onPlayingChange(false);
    write(play, "Play");
  }
  function turn() {
    if (!play.isConnected) return stop();
    go(1);
    if (isLast()) stop();
  }
  const play = createButton("Play", () => {
    if (isPlaying()) return stop();
    onPlayingChange(true);
    if (isLast()) start();
    timer = setInterval(turn, pause);
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
  if (moves) {
    still.addEventListener("change", heed);
    heed();
  }

  function draw(isFirst) {
    back.setAttribute("aria-disabled", String(isFirst));
    on.setAttribute("aria-disabled", String(isLast()));
  }
  const end = () => {
    stop();
    still.removeEventListener("change", heed);
  };
  return { nodes: [back, on, play], draw, stop, end };
}
