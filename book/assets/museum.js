/* The museum shows one exhibit at a time. Cards and all other links to an exhibit open it, and so do the
   browser's search within the page and a link into it. Without this script, and on paper, all exhibits
   stand below each other. */
(() => {
  const EXHIBIT = 'section:has(> [id^="exhibit-"])';
  const closed = "onbeforematch" in HTMLElement.prototype ? "until-found" : "";
  const cards = new Map(); // section -> its card
  document.documentElement.classList.add("course-museum");

  /** Open one exhibit, or none. */
  function show(wanted) {
    for (const [section, card] of cards) {
      const isOpen = section === wanted;
      if (isOpen) section.removeAttribute("hidden");
      else section.setAttribute("hidden", closed);
      card.ariaExpanded = isOpen;
    }
  }

  /** The exhibit that a link or the address leads to. */
  const leadsTo = ({ hash }) => document.getElementById(hash.slice(1))?.closest(EXHIBIT);

  function linkTo(href, text, className) {
    const link = document.createElement("a");
    link.className = className;
    link.textContent = text;
    if (href) link.href = href; // else it keeps the place of a neighbor that isn't there
    return link;
  }

  /** Below the heading of an exhibit: back to its wall, and to its neighbors there. */
  function createWays(section, card) {
    const ways = document.createElement("nav");
    ways.className = "course-ways";
    ways.ariaLabel = `From ${card.querySelector("span").textContent}`;
    ways.append(linkTo(`#${section.parentElement.id}`, "Back to the wall", "course-close"));
    const item = card.closest("li");
    for (const [text, to] of [
      ["← Previous", item.previousElementSibling],
      ["Next →", item.nextElementSibling],
    ]) {
      const neighbor = to?.querySelector("a");
      const link = linkTo(neighbor?.hash, text, "course-neighbor");
      link.title = neighbor?.querySelector("span").textContent ?? "";
      ways.append(link);
    }
    section.querySelector("h3").after(ways);
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const card of document.querySelectorAll(".course-wall a")) {
      const section = leadsTo(card);
      cards.set(section, card);
      section.addEventListener("beforematch", () => show(section));
      card.addEventListener("click", (event) => {
        if (section.hidden !== false) return;
        event.preventDefault();
        event.stopPropagation(); // it closes what it opened
        show(null);
      });
      section.append(linkTo(`#${section.parentElement.id}`, "Back to the wall", "course-back"));
      createWays(section, card);
    }
    const first = leadsTo(location);
    show(first);
    if (first) document.getElementById(location.hash.slice(1)).scrollIntoView();
    addEventListener("popstate", () => show(leadsTo(location)));
    addEventListener("click", ({ target }) => {
      const link = target.closest('a[href^="#"]');
      const section = link && leadsTo(link);
      if (section) show(section); // and the browser goes there, and knows the way back
    });
  });
})();
