/* The museum as a wall: in each room a card for every exhibit, with its maps, and one exhibit open at a
   time. Cards and all other links to an exhibit open it, and so do the browser's search within the page
   and a link into it. Without this script, and on paper, all exhibits stand below each other. */
(() => {
  const EXHIBIT = 'section:has(> [id^="exhibit-"])';
  const closed = "onbeforematch" in HTMLElement.prototype ? "until-found" : "";
  const cards = new Map(); // section -> its card
  document.documentElement.classList.add("course-museum");

  function createCard(section) {
    const card = document.createElement("a");
    card.href = `#${section.querySelector('[id^="exhibit-"]').id}`;
    for (const image of section.querySelector("figure")?.querySelectorAll("img") ?? []) {
      const copy = image.cloneNode();
      copy.ariaHidden = "true"; // the name says which exhibit it is
      card.append(copy);
    }
    const name = document.createElement("span");
    name.textContent = section.querySelector("h3").firstChild.textContent;
    card.append(name);
    card.addEventListener("click", (event) => {
      if (section.hidden !== false) return;
      event.preventDefault();
      event.stopPropagation(); // it closes what it opened
      show(null);
    });
    return card;
  }

  /** Open one exhibit, or none. */
  function show(wanted) {
    for (const [section, card] of cards) {
      const isOpen = section === wanted;
      if (isOpen) section.removeAttribute("hidden");
      else section.setAttribute("hidden", closed);
      card.ariaExpanded = isOpen;
    }
  }

  /** Open the exhibit that a link or the address leads to, and go there. */
  function follow({ hash }) {
    const target = document.getElementById(hash.slice(1));
    const section = target?.closest(EXHIBIT);
    if (!section) return;
    show(section);
    target.scrollIntoView();
  }

  document.addEventListener("DOMContentLoaded", () => {
    let wall;
    for (const section of document.querySelectorAll(`article ${EXHIBIT}`)) {
      if (!section.previousElementSibling.matches(EXHIBIT)) {
        wall = document.createElement("ul");
        wall.className = "course-wall";
        section.before(wall);
      }
      cards.set(section, createCard(section));
      const item = document.createElement("li");
      item.append(cards.get(section));
      wall.append(item);
      section.addEventListener("beforematch", () => show(section));
      const back = document.createElement("a");
      back.className = "course-back";
      back.href = `#${section.parentElement.id}`;
      back.textContent = "Back to the wall";
      section.append(back);
    }
    show(null);
    follow(location);
    addEventListener("hashchange", () => follow(location));
    addEventListener("click", ({ target }) => {
      const link = target.closest('a[href^="#"]');
      if (link) follow(link); // also where the address is that already, and nothing changes
    });
  });
})();
