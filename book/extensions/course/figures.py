"""Figures of the lessons: copies in dark colors and for phones, each with a caption and alt text.

Figures are SVG, drawn with the colors of attnlib's palette, so their dark copy is a replacement of
colors. The theme shows the one that fits (`only-light`, `only-dark`); caption, number and reference
target belong to the figure around both.

attnlib draws its figures a second time for phones and leaves that copy in the output's metadata
(plotting/style.py). The browser chooses by the window's width and loads only what it has chosen. A
figure that is too wide for a phone even so scrolls inside its own box, and says so.

A browser fetches a figure when it comes near the window; until then the page keeps its place free.
large-figures.js shows a drawing on the whole screen.
"""

import hashlib
import re
from pathlib import Path

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx.transforms import SphinxTransform
from sphinx.writers.html5 import HTML5Translator

from course.pages import load_where, names_in, writes

SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
PIXELS_PER_POINT = 96 / 72  # CSS Values and Units, section 6.2
PHONE = "(max-width: 36rem)"  # as in course.css
SHRINKS = 340  # pixels; on a phone what is at most so wide shrinks to the text's width
SCROLLS = "On a phone this drawing is wider than the screen: push it sideways to see the rest."
render_image = NbElementRenderer.render_image


def darken(svg: str) -> str:
    """Return an SVG in dark colors."""
    dark_of = names_in("attnlib/palette.py")["DARK"]
    colors = {light.lower(): dark for light, dark in dark_of.items()}
    pattern = re.compile("|".join(rf"{re.escape(light)}\b" for light in colors), re.IGNORECASE)
    return pattern.sub(lambda match: colors[match[0].lower()], svg)


class Picture(nodes.General, nodes.Element):
    """A figure's image and, before it, the one that a phone shows."""


class Copies(SphinxTransform):
    """Put a dark copy beside each computed SVG, and around both those for phones."""

    default_priority = 500

    def apply(self):
        for image in list(self.document.findall(nodes.image)):
            if image.parent.get("mime_type") != "image/svg+xml":
                continue
            image["loading"] = "lazy"
            choice = [image]  # the last is shown where no other is chosen
            if narrow := image.attributes.pop("narrow", None):
                choice.insert(0, nodes.image(uri=narrow, source=True))
            box = nodes.container(classes=["drawing"])
            image.replace_self(box)
            for one in choice:
                size = SIZE.search(self.file(one).read_text(encoding="utf-8"))
                sides = size.groups() if size else ()  # matplotlib writes them
                one["pixels"] = [round(float(side) * PIXELS_PER_POINT) for side in sides]
            for theme in ("light", "dark"):
                copies = [self.in_theme(theme, one) for one in choice]
                copies[-1]["classes"].append(f"only-{theme}")
                box += Picture("", *copies)
            on_phone = choice[0]["pixels"]
            if on_phone and on_phone[0] > SHRINKS:
                box["classes"].append("too-wide")
                hint = nodes.paragraph(SCROLLS, SCROLLS, classes=["drawing-hint"])
                box.parent.insert(box.parent.index(box) + 1, hint)

    def file(self, image: nodes.image) -> Path:
        return Path(self.app.srcdir, image["uri"].lstrip("/"))

    def in_theme(self, theme: str, image: nodes.image) -> nodes.image:
        """Return an image in the colors of a theme, written beside it under a short name."""
        image = image.deepcopy()
        file = self.file(image)
        svg = file.read_text(encoding="utf-8")
        if theme == "dark":
            svg = darken(svg)
        copy = file.with_name(hashlib.sha256(svg.encode()).hexdigest()[:12] + ".svg")
        copy.write_text(svg, encoding="utf-8")
        image["uri"] = image["uri"].replace(file.name, copy.name)
        return image


def keep_narrow_copy(renderer: NbElementRenderer, data: MimeData) -> list[nodes.Element]:
    """Write an image as myst-nb does, and beside it the copy for phones in its metadata."""
    images = render_image(renderer, data)
    narrow = data.output_metadata.get(data.mime_type, {}).get("narrow")
    if narrow is not None:
        name = hashlib.sha256(narrow.encode()).hexdigest() + ".svg"
        uri = renderer.write_file([name], narrow.encode(), overwrite=False, exists_ok=True)
        images[0]["narrow"] = uri
    return images


def visit_image(translator: HTML5Translator, node: nodes.image):
    if "source" in node:
        builder = translator.builder
        address = f"{builder.imgpath}/{builder.images[node['uri']]}"
        translator.body.append(f'<source media="{PHONE}" srcset="{address}" />')
    else:
        HTML5Translator.visit_image(translator, node)
    if node.get("pixels"):
        size = r'<\1 width="{}" height="{}" '.format(*node["pixels"])
        translator.body[-1] = re.sub("<(img|source) ", size, translator.body[-1], count=1)


def depart_image(translator: HTML5Translator, node: nodes.image):
    if "source" not in node:
        HTML5Translator.depart_image(translator, node)


def setup(app):
    NbElementRenderer.render_image = keep_narrow_copy
    app.add_transform(Copies)
    app.add_node(Picture, html=(writes("<picture>"), writes("</picture>")))
    app.add_node(nodes.image, override=True, html=(visit_image, depart_image))
    load_where(app, ('<div class="drawing',), "large-figures.js", loading_method="defer")
