// HeadLab's forbidden look: a reader chooses a relation, and no word may look at its partner in it.

import { namesOfHeads } from "../lab/words.js";
import { element, write } from "../shared/dom.js";
import { createNote } from "../shared/parts.js";
import { createSelect } from "./choices.js";
import { nameOf } from "./findings.js";
import { sayAllHeads, sayForbidden } from "./words.js";

/** Which look is forbidden, in which head, and what then becomes of the answers that need it. */
export function createForbidding({ task, rows }, set) {
  const which = createSelect((relation) => set("forbidden", relation));
  const where = createSelect((head) => set("forbidden_in", head));
  where.node.lastChild.setAttribute("aria-label", "Forbidden in");
  const offered = [["", "none"], ...task.relations.map(({ name }) => [name, nameOf(name)])];
  const choice = element("div", { class: "attn-row attn-forbid" }, which.node, where.node);
  const found = createNote();

  /** `before` and `now` are evaluations of the model as trained and as changed, or null. */
  function draw(state, before, now) {
    const { forbidden, numHeads } = state;
    const named = namesOfHeads(state).map((name, head) => [head, `head ${name}`]);
    const heads = named.slice(-numHeads); // of the last layer
    which.draw(forbidden?.relation ?? "", "Forbid a look:", offered);
    where.draw(forbidden?.head ?? null, "in", [[null, sayAllHeads(state)], ...heads]);
    const row = rows.find(({ name }) => name === forbidden?.relation);
    write(found, sayForbidden(row, before, now));
  }
  return { node: element("div", {}, choice, found), draw };
}
