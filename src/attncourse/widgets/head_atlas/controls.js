// HeadAtlas's controls: the score, by which heads are sorted and left out, and what maps show.

import { element, write } from "../shared/dom.js";
import { shortNumber } from "../shared/numbers.js";
import {
  createButtonGroup,
  createCheckbox,
  createControls,
  createSlider,
} from "../shared/parts.js";
import { leadsOf } from "./state.js";

const ORDERS = { layers: "layer by layer", highest: "highest first", lowest: "lowest first" };

/** Buttons after the words that say what they choose. */
function createChoice(name, texts, choose) {
  const { node, draw } = createButtonGroup(name, texts, choose);
  return { node: element("div", { class: "attn-choice" }, name, node), draw };
}

/** `set(trait, value)` is told each choice. */
export function createChoices(state, set) {
  const orders = Object.keys(ORDERS);
  const scores = createChoice(
    "Score",
    state.patterns.map(({ name }) => name),
    (i) => set("score", i),
  );
  const order = createChoice("Order", Object.values(ORDERS), (i) => set("order", orders[i]));
  const slider = createSlider("", { max: 0, choose: (position) => set("above", position) });
  const title = slider.node.firstChild;
  const lifted = createCheckbox("Lift faint weights", (checked) => set("lifted", checked));
  const valued = createCheckbox("Weight × length of the value", (checked) =>
    set("valued", checked),
  );
  const boxes = createControls(lifted.node, valued.node);
  const node = element("div", {}, scores.node, order.node, slider.node, boxes);

  /** `count` heads are shown. */
  function draw(chosen, count) {
    const { size, last, isBeaten } = leadsOf(state, chosen.score);
    const { lower } = state.patterns[chosen.score];
    const above = Math.min(chosen.above, last);
    const least = above > 1 ? `more than ${shortNumber((above - 1) * size)}` : "more than 0";
    const all = `all ${state.heads} heads`;
    const some = `${least}: ${count} of ${state.heads} heads`;
    const side = lower ? "Below" : "Above";
    scores.draw(chosen.score);
    order.draw(orders.indexOf(chosen.order));
    write(title, isBeaten ? `${side} the baseline by` : "Score (none beats its baseline)");
    slider.fit(last, []);
    slider.draw(above, above === 0 ? all : some);
    lifted.draw(chosen.lifted);
    valued.draw(chosen.valued, state.norms !== null);
  }
  return { node, draw };
}
