// Tokens x tokens in the browser: labels around a square of cells, a cursor in it, and a table.

/** A name for each token by its index; tokens that occur twice get a number in parentheses. */
function tellApart(tokens) {
  const once = (token) => tokens.indexOf(token) === tokens.lastIndexOf(token);
  return (i) => (once(tokens[i]) ? tokens[i] : `${tokens[i]} (${i + 1})`);
}

/** The cell of a plot at which a pointer event happened, or the nearest one. */
function cellAt(event, plot, rows, columns) {
  const box = plot.getBoundingClientRect();
  const index = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
  return {
    row: index((event.clientY - box.top) / box.height, rows),
    column: index((event.clientX - box.left) / box.width, columns),
  };
}

/** Tokens as labels of the rows and columns of a plot, and a cursor on one of its cells. */
function createTokenMap(tokens, plot) {
  const labels = () => tokens.map((token) => element("span", { title: token }, token));
  const [rowLabels, columnLabels] = [labels(), labels()];
  const cursorBox = element("div", { class: "attn-cursor" });
  plot.append(cursorBox);
  const hidden = { "aria-hidden": "true" };
  const node = element(
    "div",
    { class: "attn-map" },
    element("span", { class: "attn-looks", ...hidden }, "who looks ↓"),
    element("span", { class: "attn-looked-at", ...hidden }, "looked at →"),
    element("div", { class: "attn-columns", ...hidden }, ...columnLabels),
    element("div", { class: "attn-rows", ...hidden }, ...rowLabels),
    plot,
  );
  node.style.setProperty("--tokens", tokens.length);
  node.classList.toggle("attn-dense", tokens.length > 14);

  function pointAt(cell) {
    cursorBox.hidden = cell === null;
    if (cell === null) return;
    cursorBox.style.setProperty("--row", cell.row);
    cursorBox.style.setProperty("--column", cell.column);
    rowLabels.forEach((label, i) => label.classList.toggle("attn-at", i === cell.row));
    columnLabels.forEach((label, j) => label.classList.toggle("attn-at", j === cell.column));
  }
  const showCursor = () => cursorBox.scrollIntoView({ block: "nearest", inline: "nearest" });
  return { node, pointAt, showCursor };
}

/** T x T weights as a table with the sum of each row, made only when it is opened. */
function createWeightsTable(tokens) {
  const T = tokens.length;
  const summary = element("summary");
  const scroll = element("div", { class: "attn-scroll attn-table", tabindex: 0, role: "group" });
  const node = element("details", {}, summary, scroll);
  let current = null;

  function fill() {
    if (!node.open || current === null) return;
    const { weights, caption } = current;
    const header = (scope, text) => element("th", { scope }, text);
    const headerRow = element("tr", {}, header("col", "who looks"));
    headerRow.append(...tokens.map((token) => header("col", token)), header("col", "sum"));
    const body = tokens.map((token, i) => {
      const row = Array.from(weights.subarray(i * T, (i + 1) * T));
      const numbers = [...row, row.reduce((a, b) => a + b)];
      const cells = numbers.map((number) => element("td", {}, shortNumber(number, 3)));
      return element("tr", {}, header("row", token), ...cells);
    });
    const head = element("thead", {}, headerRow);
    const title = element("caption", {}, caption);
    scroll.replaceChildren(element("table", {}, title, head, element("tbody", {}, ...body)));
    scroll.setAttribute("aria-label", caption);
  }
  node.addEventListener("toggle", fill);

  function draw(weights, { summary: text, caption }) {
    current = { weights, caption };
    summary.textContent = text;
    fill();
  }
  return { node, draw };
}
