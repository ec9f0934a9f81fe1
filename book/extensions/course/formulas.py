r"""Formulas are MathML that stands in the page: no script typesets them, and none is needed.

Each carries its TeX, which readers get when they copy it (copied-formulas.js). What the converter
doesn't understand is a warning at its place in the source. So are two mistakes that the converter
passes over: brackets after `\\` that are no length, and `\\` outside an environment.

A browser may break a line after a formula; the stop or bracket that follows is held to it.
"""

import re
from html import escape

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
CONVERTER = LatexToMathML(fancy_error=False)
LENGTH = re.compile(r"(\\\\)\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|mu)\s*\]")
BRACKET = re.compile(r"\\\\\s*\[")
ENVIRONMENTS = re.compile(r"\\begin\b.*\\end\b", re.DOTALL)
STOP = re.compile(r"[.,;:?!)\]”’]+")


def mathml(tex: str, *, display: bool) -> str:
    """Return a formula as MathML; raise ValueError if it isn't understood, or misunderstood."""
    converted = LENGTH.sub(r"\1", tex)
    if BRACKET.search(converted):
        raise ValueError(r"after \\ a bracket is taken for a length: write \\{} [")
    if r"\\" in ENVIRONMENTS.sub("", converted):
        raise ValueError(r"\\ ends a line only inside an environment, such as aligned")
    try:
        written = CONVERTER.convert_with_local_state(converted, displaystyle=display)
    except LatexError as error:
        raise ValueError(f"at character {error}") from None
    return written.replace("<math", f'<math data-tex="{escape(" ".join(tex.split()))}"', 1)


def write(translator: HTML5Translator, node: nodes.Element, *, display: bool):
    try:
        translator.body.append(mathml(node.astext(), display=display))
    except ValueError as error:
        LOGGER.warning("formula %s: %s", node.astext(), error, location=node, type="formula")
        translator.body.append(f"<code>{escape(node.astext())}</code>")


def visit_inline(translator: HTML5Translator, node: nodes.math):
    translator.body.append(translator.starttag(node, "span", "", CLASS="math"))
    write(translator, node, display=False)
    translator.body.append("</span>")
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block):
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this formula")
        translator.body.append("</span>")
    write(translator, node, display=True)
    translator.body.append("</div>\n")
    raise nodes.SkipNode


class HoldStops(SphinxPostTransform):
    """Put each formula in a line together with the stop after it."""

    default_priority = 800  # when references are text
    formats = ("html",)

    def run(self, **kwargs):
        for formula in list(self.document.findall(nodes.math)):
            after = formula.next_node(descend=False, siblings=True)
            stop = STOP.match(after) if isinstance(after, nodes.Text) else None
            if stop:
                after.parent.replace(after, nodes.Text(after[stop.end() :]))
                held = nodes.inline(classes=["held-stop"])
                formula.replace_self(held)
                held += [formula, nodes.Text(stop[0])]


def setup(app):
    app.add_post_transform(HoldStops)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
