// In a notebook a cell may set any value; a view says in words which ones it can't show.

/** A widget whose views tell what `readState` refuses, for as long as it stands. */
export function tellingRefusals({ readState, default: { render } }) {
  return {
    render({ model, el }) {
      const place = document.createElement("div");
      const words = Object.assign(document.createElement("p"), { role: "alert" });
      el.replaceChildren(place, words);

      function isRight() {
        words.textContent = "";
        try {
          readState(model);
        } catch (error) {
          words.textContent = `This can't be shown: ${error.message}.`;
        }
        words.hidden = words.textContent === "";
        return words.hidden;
      }
      const tellers = new Map(); // a view's drawing -> the one that tells refusals
      const telling = (draw) => () => {
        const isShown = isRight();
        try {
          draw();
        } catch (error) {
          if (isShown) throw error;
        }
      };
      const heard = {
        get: (name) => model.get(name),
        set: (name, value) => model.set(name, value),
        save_changes: () => model.save_changes(),
        on(event, draw) {
          if (!tellers.has(draw)) tellers.set(draw, telling(draw));
          model.on(event, tellers.get(draw));
        },
        off: (event, draw) => model.off(event, tellers.get(draw)),
      };
      return isRight() ? render({ model: heard, el: place }) : undefined;
    },
  };
}
