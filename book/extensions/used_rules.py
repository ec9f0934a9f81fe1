"""Style sheets of others: the site publishes the rules that its pages can use, some two in five.

A rule whose class stands in no page and in no script never applies. Yet each page would load it,
and rules such as `.row-cols-2 > *` are asked of every element whenever it is drawn. A script may
put a class together: where one writes `bs-` or `-auto`, all that begins or ends so is kept.

Each build that writes a page starts from the sheets as they came, for that page may use other
classes.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import tinycss2
from tinycss2.ast import Node

# Those that Sphinx, the theme and extensions copy anew each time.
SHEETS = ("basic.css", "pygments.css", "mystnb.*.css", "sphinx-design.min.css", "styles/*.css")

CLASSES = re.compile(r"""\bclass=(?:"([^"]*)"|'([^']*)'|([\w-]+))""")
SCRIPT = re.compile(r"<script(?![^>]*json)[^>]*>(.*?)</script>", re.DOTALL)
WORD = re.compile(r"[\w-]+")
BEGINNING, END = re.compile(r"[A-Za-z][\w-]*-"), re.compile(r"-[A-Za-z][\w-]*")
HOLD_RULES = {"media", "supports", "layer", "container"}


def use_of(pages: Iterable[str], scripts: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether a class may be that of an element of these pages."""
    names = set()
    for page in pages:
        for listed in CLASSES.findall(page):
            names.update("".join(listed).split())
        for script in SCRIPT.findall(page):
            names.update(WORD.findall(script))
    for script in scripts:
        names.update(WORD.findall(script))
    beginnings = tuple(filter(BEGINNING.fullmatch, names))
    ends = tuple(filter(END.fullmatch, names))
    return lambda name: name in names or name.startswith(beginnings) or name.endswith(ends)


def selectors_of(prelude: list[Node]) -> Iterator[list[Node]]:
    """Part a list of selectors at its commas."""
    selector: list[Node] = []
    for token in prelude:
        if token == ",":
            yield selector
            selector = []
        else:
            selector.append(token)
    yield selector


def classes_of(selector: list[Node]) -> Iterator[str]:
    """Give the classes that an element, or one around it, must have; none of `:not(...)`."""
    for token, after in pairwise(selector):
        if token == "." and after.type == "ident":
            yield after.value


def used_rules(rules: list[Node], is_used: Callable[[str], bool]) -> str:
    """Return rules as text, without selectors whose classes aren't used and without remarks."""
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [
                tinycss2.serialize(selector).strip()
                for selector in selectors_of(rule.prelude)
                if all(map(is_used, classes_of(selector)))
            ]
            if selectors:
                kept.append(f"{','.join(selectors)}{{{tinycss2.serialize(rule.content)}}}")
        elif rule.type == "at-rule" and rule.content and rule.lower_at_keyword in HOLD_RULES:
            if inner := used_rules(tinycss2.parse_rule_list(rule.content), is_used):
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}")
        elif rule.type == "at-rule" or (rule.type == "comment" and rule.value.startswith("!")):
            kept.append(rule.serialize())  # such a remark is a license
    return "".join(kept)


def leave_used_rules(app, exception):
    """Write the sheets anew."""
    if exception is not None or app.builder.format != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    pages, scripts = (
        (file.read_text(encoding="utf-8") for file in files)
        for files in (site.rglob("*.html"), static.rglob("*.js"))
    )
    is_used = use_of(pages, scripts)
    for sheet in (sheet for pattern in SHEETS for sheet in static.glob(pattern)):
        rules = tinycss2.parse_stylesheet(sheet.read_text(encoding="utf-8"))
        sheet.write_text(used_rules(rules, is_used), encoding="utf-8")


def setup(app):
    """Run when all pages are written, and after icons and myst_nb have written their sheets."""
    app.connect("build-finished", leave_used_rules, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
