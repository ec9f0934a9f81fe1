"""Figures of the lessons: a copy in dark colors, and no figure without a caption and alt text.

Figures are SVG, drawn with the colors of attnlib's palette, so their dark copy is a replacement of
colors. The theme shows the one that fits (`only-light`, `only-dark`); caption, number and reference
target belong to the figure around both. On a phone the pair scrolls inside its own box.

A browser fetches and draws a figure when it comes near the window, and the copy that the theme
hides not at all: a lesson has dozens, and each costs time that the first screen needs. Until then
the page keeps its place free, so nothing moves.
"""

import hashlib
import re
import runpy
from pathlib import Path

from docutils import nodes
from execution_cache import package_folder
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
PIXELS_PER_POINT = 96 / 72  # CSS Values and Units, section 6.2


def dark_colors() -> dict[str, str]:
    """Return the palette's {light: dark}; the palette is plain data, so torch isn't loaded."""
    palette = runpy.run_path(str(package_folder() / "palette.py"))
    return {light.lower(): dark for light, dark in palette["DARK"].items()}


def darken(svg: str, colors: dict[str, str]) -> str:
    """Return the SVG with each of the given colors replaced."""
    pattern = re.compile("|".join(rf"{re.escape(light)}\b" for light in colors), re.IGNORECASE)
    return pattern.sub(lambda match: colors[match[0].lower()], svg)


class DarkCopies(SphinxTransform):
    """Put a dark copy beside each computed SVG."""

    default_priority = 500

    def apply(self):
        """Walk the images that cells made."""
        for image in list(self.document.findall(nodes.image)):
            if image.parent.get("mime_type") != "image/svg+xml":
                continue
            light = Path(self.app.srcdir, image["uri"].lstrip("/"))
            svg = light.read_text(encoding="utf-8")
            if size := SIZE.search(svg):  # as matplotlib writes it
                image["pixels"] = [round(float(side) * PIXELS_PER_POINT) for side in size.groups()]
            image["loading"] = "lazy"
            svg = darken(svg, dark_colors())
            dark = light.with_name(hashlib.sha256(svg.encode()).hexdigest() + ".svg")
            dark.write_text(svg, encoding="utf-8")
            copy = image.deepcopy()
            copy["uri"] = image["uri"].replace(light.name, dark.name)
            box = nodes.container(classes=["drawing"])
            image.replace_self(box)
            image["classes"].append("only-light")
            copy["classes"].append("only-dark")
            box.extend([image, copy])


class FigureRules(SphinxTransform):
    """Warn of images that say nothing to a reader who can't see them, or that have no caption."""

    default_priority = 490

    def apply(self):
        """Walk all images; those that cells made need a caption too."""
        for image in self.document.findall(nodes.image):
            computed = "mime_type" in image.parent
            if not image.get("alt", "").strip():
                hint = "its cell needs mystnb: image: alt" if computed else image["uri"]
                warn(image, f"image without alt text: {hint}")
            if computed and not any(map(has_caption, ancestors(image))):
                warn(image, "computed figure without caption: its cell needs mystnb: figure")


def visit_image(translator: HTML5Translator, node: nodes.image):
    """Write an image as Sphinx does, and its size where it is known."""
    HTML5Translator.visit_image(translator, node)
    if "pixels" in node:
        size = '<img width="{}" height="{}" '.format(*node["pixels"])
        translator.body[-1] = translator.body[-1].replace("<img ", size, 1)


def has_caption(node: nodes.Node) -> bool:
    """Tell whether a node is a figure with a caption."""
    children = getattr(node, "children", [])
    return isinstance(node, nodes.figure) and any(isinstance(c, nodes.caption) for c in children)


def ancestors(node: nodes.Node):
    """Walk from a node to the document's root."""
    while node is not None:
        yield node
        node = node.parent


def warn(node: nodes.Node, message: str):
    """Warn where the node, or what it is part of, stands in its source."""
    place = next((n for n in ancestors(node) if n.line), node)
    LOGGER.warning(message, location=place, type="figures")


def setup(app):
    """Register all three."""
    app.add_transform(FigureRules)
    app.add_transform(DarkCopies)
    app.add_node(nodes.image, override=True, html=(visit_image, HTML5Translator.depart_image))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
