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

/** Write a text into a node. One that stands there already stays: a new one would cost a layout. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Give a node an attribute. One that it has already is left alone: the browser would draw it anew. */
export function writeAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Let a node have these children. It has the first of them, or more than them, already: they stay. */
export function showChildren(node, children) {
  while (node.childElementCount > children.length) node.lastElementChild.remove();
  node.append(...children.slice(node.childElementCount));
}

/** Make a box that scrolls a stop of the Tab key, so that keys can scroll it, while it is too small. */
export function reachWhileScrolling(box, name) {
  const update = () => {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 1;
    const attributes = { tabindex: 0, role: "group", "aria-label": name };
    for (const [attribute, value] of Object.entries(attributes)) {
      if (scrolls) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
    }
  };
  const observer = new ResizeObserver(update);
  for (const node of [box, ...box.children]) observer.observe(node);
}
