// Parts that widgets are put together from.

import { element } from "./dom.js";
import { keepKeys } from "./keys.js";

/** The frame of a widget: its title, what it shows, and keys that JupyterLab leaves to it. */
export function createWidget(name, title, ...children) {
  const attributes = { class: `attn-widget attn-${name}`, role: "group", "aria-label": title };
  const root = element(
    "div",
    attributes,
    element("p", { class: "attn-title" }, title),
    ...children,
  );
  keepKeys(root);
  return root;
}

/** The scale of weights, and `signs`: what else is to be seen, as [class, words]. */
export function createWeightsLegend(...signs) {
  const scale = element("span", { class: "attn-scale", "aria-hidden": "true" });
  const entries = signs.map(([name, words]) => element("span", { class: name }, words));
  return element("div", { class: "attn-legend" }, "weight 0", scale, "1", ...entries);
}
