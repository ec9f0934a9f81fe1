// MaskPainter: a mask painted cell by cell, the weights under it, and who sees the future.

import { attentionWeights } from "../shared/attention.js";
import { element } from "../shared/dom.js";
import {
  createButton,
  createCheckbox,
  createControls,
  createNote,
  createPanels,
  createPanes,
  createWeightsLegend,
  createWidget,
} from "../shared/parts.js";
import { readerOf, redrawOn, setterOf } from "../shared/state.js";
import { createWeightsTable, readTokens } from "../shared/token_map.js";
import { createUndo } from "../shared/undo.js";
import { createPainting } from "./cells.js";
import { changedRows, createRowChange } from "./row.js";
import { blindRows, createVerdict } from "./verdict.js";

/** The widget's state, checked. */
export function readState(model) {
  const state = readTokens(model);
  const cells = state.T ** 2;
  const isMask = (mask) =>
    Array.isArray(mask) && mask.length === cells && mask.every((cell) => cell === !!cell);
  const read = readerOf(model);
  read.read("mask", isMask, `${cells} booleans`);
  const isFlag = (value) => typeof value === "boolean";
  for (const name of ["meant_causal", "puzzle"]) read.read(name, isFlag, "true or false");
  return state;
}

/** Masks to start from: whether row i may look at column j. */
const PRESETS = {
  everything: () => true,
  causal: (i, j) => j <= i,
  "causal, window of 3": (i, j) => j <= i && j > i - 3,
  "no self": (i, j) => i !== j,
  "last two are padding": (_i, j, T) => j < T - 2,
  nothing: () => false,
};

/** What a mask of these is meant to be; a reader says it of all others. */
const MEANT_CAUSAL = {
  everything: false,
  causal: true,
  "causal, window of 3": true,
  "no self": false,
  "last two are padding": false,
};

function presetMask(name, T) {
  return Array.from({ length: T * T }, (_, cell) =>
    PRESETS[name](Math.floor(cell / T), cell % T, T),
  );
}

function createPresets(T, { choose }) {
  const buttons = Object.keys(PRESETS).map((name) => {
    const button = createButton(name, () => choose(name, presetMask(name, T), MEANT_CAUSAL[name]));
    return { button, mask: presetMask(name, T).join() };
  });
  const attributes = { class: "attn-controls attn-row", role: "group", "aria-label": "Masks" };
  const node = element("div", attributes);
  node.append(...buttons.map(({ button }) => button));
  function draw(mask) {
    const painted = mask.join();
    for (const preset of buttons) {
      preset.button.setAttribute("aria-pressed", String(preset.mask === painted));
    }
  }
  return { node, draw };
}

function render({ model, el }) {
  const { tokens, T, d, q, k } = readState(model);
  const set = setterOf(model);
  const undo = createUndo({
    read: () => [model.get("mask"), model.get("meant_causal")],
    restore([mask, isCausal]) {
      set("meant_causal", isCausal);
      set("mask", mask);
    },
  });
  let isStroke = false;
  const presets = createPresets(T, {
    choose(name, mask, isCausal = model.get("meant_causal")) {
      undo.remember();
      const isTickMoved = isCausal !== model.get("meant_causal");
      set("meant_causal", isCausal);
      set("mask", mask);
      if (isTickMoved) {
        moved.textContent = `\u201c${name}\u201d ${isCausal ? "set" : "cleared"} the tick.`;
      }
    },
  });
  const meant = createCheckbox("This is meant to be causal", (isCausal) => {
    undo.remember();
    set("meant_causal", isCausal);
  });
  const moved = element("p", { class: "attn-note attn-moved", role: "status" });
  const painting = createPainting(tokens, {
    begin() {
      undo.remember();
      [isStroke, base] = [true, { mask: drawn.mask, weights: drawn.weights }];
    },
    end() {
      isStroke = false;
      draw();
    },
    paint(cells, mayLook) {
      const mask = [...model.get("mask")];
      for (const { row, column } of cells) mask[row * T + column] = mayLook;
      lastRow = cells.at(-1).row;
      set("mask", mask);
    },
  });
  const [verdict, row] = [createVerdict(tokens), createRowChange(tokens)];
  const table = createWeightsTable(tokens);
  const legend = createWeightsLegend(
    ["attn-barred", "blank: may not look"],
    ["attn-barred attn-nowhere", "looks nowhere"],
    ["attn-future", "looks into the future, right of the line"],
  );
  const root = createWidget(
    "mask-painter",
    "Who may look at whom",
    createPanes(
      [
        createNote(`Queries and keys: ${model.get("origin")}.`),
        presets.node,
        createControls(meant.node, undo.node, moved),
        verdict.node,
      ],
      [createPanels(element("div", {}, painting.node, legend), row.node)],
    ),
    table.node,
  );
  let drawn = null; // the mask and the weights that are to be seen
  let base = null; // those before the last change
  let lastRow = T - 1;
  const solution = presetMask("causal", T).join();
  presets.node.hidden = model.get("puzzle");
  presets.node.classList.toggle("attn-prize", model.get("puzzle"));

  /** Show the row that was painted last, or one that changed in another way. */
  function drawRow() {
    const changed = base === null ? [] : changedRows(base.mask, drawn.mask, T);
    if (changed.length > 0 && !changed.includes(lastRow)) lastRow = changed.at(-1);
    const before = changed.length > 0 ? base.weights : null;
    row.draw(lastRow, drawn.weights, before, changed.length);
  }

  function draw() {
    moved.textContent = "";
    const [mask, isCausal] = [model.get("mask"), model.get("meant_causal")];
    const weights = attentionWeights(q, k, { T, d, numHeads: 1, head: 0, causal: false, mask });
    // When the puzzle is solved, they are shown for good; not during a stroke, which may go on.
    if (!isStroke && mask.join() === solution) presets.node.hidden = false;
    const isUnsolved = presets.node.hidden;
    root.toggleAttribute("data-unsolved", isUnsolved);
    const findings = { blind: blindRows(mask, T), isCausal, isUnsolved };
    if (!isStroke && drawn !== null && drawn.mask !== mask) base = drawn;
    drawn = { mask, weights };
    presets.draw(mask);
    meant.draw(isCausal);
    painting.draw(mask, weights, findings);
    verdict.draw(mask, findings);
    legend.lastChild.style.visibility = isCausal && !isUnsolved ? "" : "hidden";
    drawRow();
    const caption = "Weights under this mask: rows look at columns";
    table.draw({ weights, caption }, { label: caption });
  }

  undo.listenTo(root);
  draw();
  el.replaceChildren(root);
  return redrawOn(model, ["mask", "meant_causal"], draw);
}

export default { render };
