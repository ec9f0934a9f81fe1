"""A resolved page as Markdown that any notebook program reads, without MyST.

References, numbers and citations are text or links by then. The result is a series of blocks: text
between cells, and the cells themselves, by their place in the notebook.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from textwrap import indent
from typing import NamedTuple

from docutils import nodes
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
# Backslash first, or it would be doubled.
SPECIAL = re.compile(r"([\\`*_\[\]<>$~])")
START_OF_LIST = re.compile(r"^(\d+)([.)]\s)|^([#+-])(?=\s)", re.MULTILINE)
LINK = re.compile(r'<a href="(#[^"]+)"')
MORE = ", continued"
MARKS = {"inline": "", "emphasis": "*", "strong": "**"}  # around a part of a line
VERTICAL_BAR = r"\vert "  # a bar would end a table's cell
SKIPPED = {
    "colspec", "comment", "compound", "index", "substitution_definition", "target", "toctree",
}  # fmt: skip


class Cell(NamedTuple):
    """A code cell that stands between texts."""

    index: int  # among all cells of the notebook
    captions: list[str]  # Markdown, one for each figure it draws


class MarkdownWriter:
    """Writes the nodes of one page.

    Args:
        page: its links tell which places in it need an anchor.
        address: returns where a reference leads, "#..." if it is on this page; empty if nowhere.
        numbers: has ("L04", 3) for "figure" and "fig-l04-model".
    """

    def __init__(self, page: nodes.document, address: Callable, numbers: dict[str, dict]):
        self.address, self.numbers, self.in_table = address, numbers, False
        # A solution's title names its exercise in plain text; cells, too, write links.
        links = page.findall(nodes.reference)
        addresses = [address(a) for a in links if a.parent.parent.tagname != "solution_node"]
        for raw in page.findall(nodes.raw):
            addresses += LINK.findall(raw.astext())
        self.wanted = {address[1:] for address in addresses if address.startswith("#")}  # ids

    def number(self, kind: str, name: str) -> str:
        """Return "L04.3" for "figure" and "fig-l04-model"."""
        return ".".join(map(str, self.numbers.get(kind, {}).get(name, ())))

    def blocks(self, node: nodes.Element) -> Iterator[str | Cell]:
        """Yield what stands below a node, block by block."""
        for child in node.children:
            if child.tagname not in SKIPPED:
                yield from getattr(self, f"_block_{child.tagname}", self.unknown)(child)

    def unknown(self, node: nodes.Node) -> tuple:
        """Warn of a node that no method writes; it leaves nothing."""
        LOGGER.warning("the notebook can't show <%s>", node.tagname, location=node)
        return ()

    def text(self, node: nodes.Element) -> str:
        return "".join(map(self.inline, node.children))

    def inline(self, node: nodes.Node) -> str:
        if node.tagname in MARKS:
            return f"{MARKS[node.tagname]}{self.text(node)}{MARKS[node.tagname]}"
        write = getattr(self, f"_inline_{node.tagname.lstrip('#')}", self.unknown)
        return "".join(write(node))

    def _inline_text(self, node):
        text = SPECIAL.sub(r"\\\1", node.astext()).replace("&", "&amp;")
        return text.replace("|", "\\|").replace("\n", " ") if self.in_table else text

    def _inline_literal(self, node):
        text = node.astext().replace("|", "\\|") if self.in_table else node.astext()
        fence = "``" if "`" in text else "`"
        return f"{fence}{text}{fence}"

    def _inline_math(self, node):
        formula = node.astext().strip()
        return f"${formula.replace('|', VERTICAL_BAR) if self.in_table else formula}$"

    def _inline_reference(self, node):
        address = self.address(node)
        return f"[{self.text(node)}]({address})" if address else self.text(node)

    _inline_number_reference = _inline_reference

    def _inline_image(self, node):
        return SPECIAL.sub(r"\\\1", node["alt"])

    def _inline_raw(self, node):  # "words" say what its HTML shows; targets show nothing
        return node.get("words", "")

    _inline_target = _inline_index = _inline_raw

    def anchors(self, node: nodes.Element) -> str:
        """Return the places in the page that links lead to."""
        return "".join(f'<a id="{name}"></a>' for name in node["ids"] if name in self.wanted)

    def _block_paragraph(self, node):
        text = START_OF_LIST.sub(r"\1\\\2\3", self.text(node).strip())
        if text:
            yield text

    def _block_section(self, node):
        if anchors := self.anchors(node):
            yield anchors
        yield from self.blocks(node)

    _block_glossary = blocks

    def _block_title(self, node):
        depth, section = 0, node.parent
        while isinstance(section, nodes.section):
            depth, section = depth + 1, section.parent
        yield f"{'#' * depth} {self.text(node)}"

    def _block_container(self, node):
        if node.get("nb_element") == "cell_code":
            captions = [self.caption(figure) for figure in node.findall(nodes.figure)]
            yield Cell(node["cell_index"], captions)
        else:
            yield from self.blocks(node)

    def caption(self, figure: nodes.figure) -> str:
        """Return what stands below a figure: number, caption, and its alternative text."""
        number = self.number("figure", figure["ids"][0]) if figure["ids"] else ""
        [caption] = figure.findall(nodes.caption)
        begin = f"**Figure {number}.** " if number else ""
        text = f"{self.anchors(figure)}{begin}{self.text(caption)}"
        for image in figure.findall(nodes.image):
            if "alt" in image:
                return f"{text}\n\n{fold('The figure in words', self._inline_image(image))}"
        return text  # it wasn't drawn

    def _block_exercise_enumerable_node(self, node):
        title, content = node.children
        name = f"Exercise {self.number('exercise', node['label'])}"
        subtitle = self.text(title).strip().removeprefix("(").removesuffix(")")
        yield f"{self.anchors(node)}\n\n#### {name}: {subtitle}".strip()
        yield from self.blocks(content)

    def _block_solution_node(self, node):
        _, content = node.children
        name = f"Solution to Exercise {self.number('exercise', node['target_label'])}"
        for block in joined(self.blocks(content)):
            if isinstance(block, Cell):
                yield block
            else:
                yield fold(name, block)
                name = f"{name.removesuffix(MORE)}{MORE}"

    def _block_bullet_list(self, node):
        yield "\n".join(self.item(item, "* ") for item in node.children)

    def _block_enumerated_list(self, node):
        start = node.get("start", 1)
        yield "\n".join(self.item(item, f"{i}. ") for i, item in enumerate(node.children, start))

    def item(self, node: nodes.list_item, mark: str) -> str:
        text = "\n\n".join(self.only_text(node))
        return mark + indent(text, " " * len(mark)).lstrip()

    def only_text(self, node: nodes.Element) -> list[str]:
        return [block for block in self.blocks(node) if isinstance(block, str)]

    def _block_definition_list(self, node):
        for item in node.children:
            terms = [child for child in item.children if isinstance(child, nodes.term)]
            names = ", ".join(f"**{self.text(term)}**" for term in terms)
            anchors = "".join(map(self.anchors, terms))
            meaning = "\n\n".join(self.only_text(item[-1]))
            yield f"{anchors}{names}: {meaning}"

    def _block_block_quote(self, node):
        yield "> " + "\n\n".join(self.only_text(node)).replace("\n", "\n> ")

    def _block_literal_block(self, node):
        yield f"```{node.get('language', '').removesuffix('default')}\n{node.astext().strip()}\n```"

    def _block_math_block(self, node):
        yield f"$$\n{node.astext().strip()}\n$$"

    def _block_raw(self, node):
        if words := node.get("words"):
            yield words

    def _block_transition(self, node):
        yield "---"

    def _block_table(self, node):
        self.in_table = True
        rows = [
            "| " + " | ".join(" ".join(self.only_text(entry)) for entry in row.children) + " |"
            for row in node.findall(nodes.row)
        ]
        self.in_table = False
        columns = len(list(node.findall(nodes.colspec)))
        yield "\n".join([rows[0], "|" + " --- |" * columns, *rows[1:]])


def fold(summary: str, inside: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>"


def joined(blocks: Iterator[str | Cell]) -> Iterator[str | Cell]:
    """Join texts between which no cell stands."""
    for kind, some in groupby(blocks, type):
        found = [*some]
        yield from ["\n\n".join(found)] if kind is str else found
