// HeadLab's choice of a task, and of what varies a task with two needs.

import { element } from "../shared/dom.js";
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

/** One of several numbers; `choose(number)` is told another one. */
function createNumbers(numbers, choose) {
  const options = numbers.map((number) => element("option", { value: number }, String(number)));
  const select = element("select", {}, ...options);
  select.addEventListener("change", () => choose(Number(select.value)));
  const name = element("span");
  const node = element("label", {}, name, select);
  function draw(chosen, text) {
    select.value = chosen;
    name.textContent = text;
  }
  return { node, draw };
}

/** What may be chosen of a task with two needs: `set(trait, value)` is told another choice. */
export function createChoices({ symbolCounts, stepCounts }, set) {
  const symbols = createNumbers(symbolCounts, (count) => set("symbols", count));
  const steps = createNumbers(stepCounts, (count) => set("steps", count));
  const mlp = createCheckbox("an MLP behind attention", (checked) => set("mlp", checked));
  const node = element("div", { class: "attn-row attn-choices" });
  node.append(symbols.node, steps.node, mlp.node);
  function draw(state) {
    const { count } = TASKS[state.task];
    node.hidden = count === undefined;
    symbols.draw(state.symbols, count ?? "");
    steps.draw(state.steps, "Steps");
    mlp.draw(state.mlp);
  }
  return { node, draw };
}
