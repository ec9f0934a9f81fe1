// HeadLab's choice of a task, and of what varies a task with two needs.

import { element, write } from "../shared/dom.js";
import { wholeText } from "../shared/numbers.js";
import { createButtonGroup, createCheckbox } from "../shared/parts.js";
import { TASKS } from "./tasks.js";

/** A button for each task; `choose(name)` is told the one that is pressed. */
export function createTabs(choose) {
  const names = Object.keys(TASKS);
  const texts = names.map((name) => TASKS[name].tab);
  const { node, draw } = createButtonGroup("What is learned", texts, (i) => choose(names[i]));
  node.classList.add("attn-tabs");
  return { node, draw: (chosen) => draw(names.indexOf(chosen)) };
}

/** One of several values; `choose(value)` is told another one. */
export function createSelect(choose) {
  const select = element("select");
  const name = element("span");
  const node = element("label", {}, name, select);
  let values = [];
  select.addEventListener("change", () => choose(values[select.selectedIndex]));

  /** `offered` are [value, text]; where there are as many as before, they are the same. */
  function draw(chosen, title, offered) {
    write(name, title);
    if (offered.length !== values.length) {
      values = offered.map(([value]) => value);
      select.replaceChildren(...offered.map(([, text]) => element("option", {}, text)));
    }
    select.selectedIndex = values.indexOf(chosen);
  }
  return { node, draw };
}

/** What may be chosen of a task with two needs: `set(trait, value)` is told another choice. */
export function createChoices({ symbolCounts, stepCounts }, set) {
  const symbols = createSelect((count) => set("symbols", count));
  const steps = createSelect((count) => set("steps", count));
  const listed = (numbers) => numbers.map((number) => [number, wholeText(number)]);
  const mlp = createCheckbox("an MLP after attention", (checked) => set("mlp", checked));
  const node = element("div", { class: "attn-row attn-choices" });
  node.append(symbols.node, steps.node, mlp.node);
  function draw(state) {
    const { count } = TASKS[state.task];
    node.hidden = count === undefined;
    symbols.draw(state.symbols, count ?? "", listed(symbolCounts));
    steps.draw(state.steps, "Steps", listed(stepCounts));
    mlp.draw(state.mlp);
  }
  return { node, draw };
}
