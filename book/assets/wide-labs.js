/* Folds the list of contents up while a lab that is wider than the text stands beside it. The theme
   knows such a list: its class `hide` leaves the title, until a reader points there. */
(() => {
  const list = document.querySelector(".bd-sidebar-secondary");
  if (list === null) return;
  const isWide = matchMedia("(min-width: 1280px)"); // as in the style beside this script
  const inSight = new Set();
  function update() {
    list.classList.toggle("hide", isWide.matches && inSight.size > 0);
  }
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) inSight.add(target);
      else inSight.delete(target);
    }
    update();
  });
  isWide.addEventListener("change", update);
  addEventListener("load", () => {
    for (const lab of document.querySelectorAll(".course-widget:has(.attn-wide)"))
      watch.observe(lab);
  });
})();
