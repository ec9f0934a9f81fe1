/* Shows a figure on the whole screen: for a projector, or for a closer look.

   A press on the drawing does it, and so does a button in the figure's corner, which is seen while the
   pointer is over the figure or the keyboard has reached it. Escape, or the same press again, leads
   back. It is the figure itself that becomes large, so it keeps its theme, caption and place, and
   nothing on the page moves. Where a browser can't show a part of a page so, nothing is offered. */
(() => {
  if (!document.fullscreenEnabled) return;
  for (const drawing of document.querySelectorAll("article figure .drawing")) {
    const figure = drawing.closest("figure");
    const number = figure.querySelector(".caption-number")?.textContent.trim();
    const button = document.createElement("button");
    const icon = document.createElement("span");
    icon.className = "fa-solid fa-expand";
    icon.ariaHidden = "true";
    button.type = "button";
    button.className = "course-enlarge";
    button.append(icon);
    const isLarge = () => document.fullscreenElement === figure;
    const tell = () => {
      button.ariaLabel = `${isLarge() ? "Leave the full screen" : "Full screen"}: ${number}`;
    };
    const toggle = () => (isLarge() ? document.exitFullscreen() : figure.requestFullscreen());
    button.addEventListener("click", toggle);
    drawing.addEventListener("click", toggle);
    figure.addEventListener("fullscreenchange", tell);
    tell();
    figure.append(button);
  }
})();
