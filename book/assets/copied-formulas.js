/* Who copies a passage gets its formulas as TeX: $d_k$. Where formatted text is pasted they stay
   formulas. */
(() => {
  const formulaAround = (node) => (node.closest ? node : node.parentElement)?.closest("math");

  function copy(event) {
    const selection = getSelection();
    if (selection.isCollapsed || event.target.closest?.("input, textarea")) return;
    const range = selection.getRangeAt(0).cloneRange();
    const [first, last] = [range.startContainer, range.endContainer].map(formulaAround);
    if (first) range.setStartBefore(first); // a formula is copied whole
    if (last) range.setEndAfter(last);
    const passage = document.createElement("div");
    passage.append(range.cloneContents());
    const formulas = passage.querySelectorAll("math[data-tex]");
    if (!formulas.length) return;
    event.preventDefault();
    event.clipboardData.setData("text/html", passage.innerHTML);
    for (const formula of formulas) {
      const sign = formula.getAttribute("display") === "block" ? "$$" : "$";
      formula.replaceWith(`${sign}${formula.dataset.tex}${sign}`);
    }
    document.body.append(passage);
    // biome-ignore lint/performance/useDomNodeTextContent: only what is laid out has lines
    event.clipboardData.setData("text/plain", passage.innerText);
    passage.remove();
  }

  document.addEventListener("copy", copy);
})();
