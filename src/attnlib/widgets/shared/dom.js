// Elements of the page.

/** An element with attributes and children. Text is only ever text, never parsed as HTML. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** An SVG element with attributes and children. Text is only ever text. */
export function svgElement(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Make a box that scrolls a stop of the Tab key, so that keys can scroll it, while it is too small. */
export function reachWhileScrolling(box, name) {
  const update = () => {
    const scrolls = box.scrollWidth > box.clientWidth;
    const attributes = { tabindex: 0, role: "group", "aria-label": name };
    for (const [attribute, value] of Object.entries(attributes)) {
      if (scrolls) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
    }
  };
  const observer = new ResizeObserver(update);
  for (const node of [box, ...box.children]) observer.observe(node);
}
