// HeadAtlas: every head of a model as a small map, sorted by what it does, and its rows.

import { element, write } from "../shared/dom.js";
import { shortNumber, tileNumber, withMinus } from "../shared/numbers.js";
import {
  createButton,
  createLive,
  createNote,
  createPanes,
  createWeightsLegend,
  createWidget,
} from "../shared/parts.js";
import { followerOf, setterOf } from "../shared/state.js";
import { paintWeights } from "../shared/weights_picture.js";
import { createChoices } from "./controls.js";
import { createHeadView, drawLegend } from "./head.js";
import { createKeys, createText, sayFavorites } from "./row.js";
import { createNumbers, createScores } from "./scores.js";
import {
  checkedState,
  mayLook,
  rowOf,
  scoreOf,
  sharesOf,
  shownHeads,
  tokensOf,
  wholeRow,
} from "./state.js";
import { createTiles } from "./tiles.js";
import { asTitle, createNames, scoreText } from "./words.js";

const MOVED = ["score", "order", "above", "head", "pinned", "token", "lifted", "valued"];

/** The widget's state, checked. */
export function readState(model) {
  return checkedState(model);
}

/** What a reader has chosen. */
function chosenOf(model, { norms }) {
  const chosen = Object.fromEntries(MOVED.map((name) => [name, model.get(name)]));
  return { ...chosen, valued: chosen.valued && norms !== null };
}

function render({ model, el }) {
  const state = readState(model);
  const names = createNames(state);
  const set = setterOf(model);
  const follower = followerOf(model);
  const chosen = () => chosenOf(model, state);

  /** Draw a head's map, small or large. */
  function drawMap(canvas, head) {
    const { lifted, valued } = chosen();
    const shares = sharesOf(state, head, valued);
    const shades = lifted ? shares.map(Math.sqrt) : shares;
    const rows = state.cells;
    const ends = (row) => (state.causal ? row + 1 : rows);
    paintWeights(canvas, shades, rows, { rows, mayLook: ends, top: 1 });
  }
  const choices = createChoices(state, set);
  const tiles = createTiles(state, names, {
    drawMap,
    choose(head) {
      set("head", head);
      // Where the large map stands below the tiles it may be out of sight.
      const isBelow = details.offsetTop >= tiles.node.offsetTop + tiles.node.offsetHeight;
      if (isBelow) view.node.scrollIntoView({ block: "nearest" });
    },
  });
  const tilesNote = createNote();
  const view = createHeadView(state, names, { read: readCell, drawMap });
  const beside = createHeadView(state, names, { read: readCell, drawMap });
  const pin = createButton("", () => {
    const { pinned, head } = chosen();
    set("pinned", pinned === -1 ? head : -1);
  });
  const waiting = createNote("It is pinned: choose another to see both.");
  const [live, favorites] = [createLive(), createLive()];
  for (const said of [live, favorites]) said.dir = "ltr"; // whatever way the words run
  const legend = createWeightsLegend(["attn-barred", "blank: may not look"]);
  legend.lastChild.hidden = !state.causal;
  const products = createNote(
    "Each weight times the length of its key's value; then each row is divided by its sum.",
    state.perCell > 1 ? " A cell takes the mean length of its keys." : "",
  );
  const scores = createScores(state, names);
  const text = createText(names, { choose: (token) => set("token", token) });
  const [keys, keysBeside] = [createKeys(state, names), createKeys(state, names)];
  const numbers = createNumbers(state, names);
  const pair = (...nodes) => element("div", { class: "attn-pair" }, ...nodes);
  const details = element(
    "div",
    { class: "attn-details" },
    element(
      "div",
      {},
      pair(view.node, beside.node),
      live,
      legend,
      products,
      element("div", { class: "attn-row" }, pin, waiting),
    ),
    element(
      "div",
      {},
      createNote("Choose a token: its row in the chosen head."),
      text.node,
      favorites,
      pair(keys.node, keysBeside.node),
    ),
    scores.node,
  );
  const root = createWidget(
    "head-atlas",
    `Every head of ${state.name}`,
    createPanes(
      [
        createNote(state.about.join(" "), " Weights show where a head looks, not why."),
        choices.node,
        tiles.node,
        tilesNote,
      ],
      [details],
    ),
    numbers.node,
  );

  /** The heads that are enlarged: one, or two. */
  function heads() {
    const { head, pinned } = chosen();
    return pinned === -1 || pinned === head ? [head] : [head, pinned];
  }
  const read = (head, { row, column }) => {
    const { valued } = chosen();
    if (state.perCell === 1) return wholeRow(state, head, row, valued)[column];
    return sharesOf(state, head, valued)[row * state.cells + column];
  };

  function readCell(cell) {
    const { row, column } = cell;
    const shown = heads();
    const weight = (head) => [
      shown.length > 1 ? `${names.short(head)} ` : "",
      element("strong", {}, shortNumber(read(head, cell))),
    ];
    const [first] = tokensOf(state, column);
    const [, end] = tokensOf(state, row);
    const isBarred = first >= mayLook(state, end - 1);
    live.replaceChildren(
      element("bdi", { class: "attn-query" }, names.cell(row)),
      " → ",
      element("bdi", { class: "attn-key" }, names.cell(column)),
      " ",
      ...(isBarred
        ? [element("strong", {}, "0"), " (may not look: it comes later)"]
        : shown.flatMap((head, i) => [i > 0 ? ", " : "", ...weight(head)])),
    );
  }

  function sayHead() {
    const { score } = chosen();
    const { name } = state.patterns[score];
    const said = heads().map((head) => {
      const found = scoreOf(state, score, head);
      return `${names.head(head)}: ${scoreText(found)} (baseline ${shortNumber(found.baseline)})`;
    });
    live.replaceChildren(`${asTitle(name)}, ${said.join("; ")}`);
  }

  function drawOverview() {
    const { score, order, above, head } = chosen();
    const shown = shownHeads(state, { score, order, above });
    const { name, rule, lower } = state.patterns[score];
    choices.draw(chosen(), shown.length);
    const number = (other) => tileNumber(scoreOf(state, score, other).mean);
    tiles.draw(shown, { scoreOf: number, scoreName: name });
    tiles.mark(head);
    const unit = lower ? "in nats, low where a head looks at few keys; " : "";
    write(
      tilesNote,
      `Layer.head, counted from 1, and its ${name} score (${unit}baseline: ${withMinus(rule)}). ` +
        "Rows look at columns. Below each map, what the head looks at most from the chosen token.",
    );
    drawNumbers();
    sayHead();
  }

  function drawMaps() {
    const { lifted, valued } = chosen();
    tiles.redraw({ lifted, valued });
    products.hidden = !valued;
    drawLegend(legend, { of: valued ? "share" : "weight", lifted });
    drawHeads();
    drawRow();
  }

  function drawHeads() {
    const { head, pinned } = chosen();
    const shown = heads();
    tiles.mark(head);
    view.draw(head);
    beside.node.hidden = shown.length === 1;
    if (shown.length > 1) beside.draw(pinned);
    write(pin, pinned < 0 ? `Pin ${names.head(head)}` : `Unpin ${names.head(pinned)}`);
    waiting.hidden = pinned !== head;
    pin.setAttribute("aria-pressed", String(pinned >= 0));
    scores.draw(shown);
    sayHead();
  }

  function drawKeys() {
    const { token, valued } = chosen();
    const [row, other] = heads().map((head) => rowOf(state, head, token, valued));
    const [head, pinned] = heads();
    text.draw(token, row);
    keys.draw(head, token, row);
    keysBeside.node.hidden = other === undefined;
    if (other !== undefined) keysBeside.draw(pinned, token, other);
    drawNumbers();
  }

  function drawRow() {
    const { token, valued } = chosen();
    const best = Array.from(
      { length: state.heads },
      (_, head) => rowOf(state, head, token, valued).largest[0] ?? null,
    );
    tiles.label((head) => (best[head] === null ? "–" : `→ ${names.texts[best[head].key]}`));
    favorites.replaceChildren(
      ...sayFavorites(
        best.map((found) => found?.key ?? null),
        token,
        names,
      ),
    );
    drawKeys();
  }

  function drawNumbers() {
    const { score, order, above, token, valued } = chosen();
    const rows = heads().map((head) => ({ head, row: rowOf(state, head, token, valued) }));
    const shown = shownHeads(state, { score, order, above });
    numbers.draw({ heads: shown, rows, token }, { label: "Tables of the numbers" });
  }

  drawOverview();
  drawMaps();
  el.replaceChildren(root);
  text.reveal(chosen().token);
  const stops = [
    follower.on(["score", "order", "above"], drawOverview),
    follower.on(["lifted", "valued"], () => {
      choices.draw(chosen(), shownHeads(state, chosen()).length);
      drawMaps();
    }),
    follower.on(["head", "pinned"], () => {
      drawHeads();
      drawKeys();
    }),
    follower.on(["token"], () => {
      drawRow();
      text.reveal(chosen().token);
    }),
    tiles.end,
  ];
  return () => stops.forEach((stop) => stop());
}

export default { render };
