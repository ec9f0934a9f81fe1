"""The licenses of packages, as the metadata that is installed with them tells them.

`{license-of}`sphinx`` is one; `{packages}` a table of all that requirements.txt names, with what
each is for. The directive's content is for those who read the page's source.
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

LOGGER = logging.getLogger(__name__)
REQUIRED = re.compile(
    r"^([A-Za-z][\w.-]*)[^#\n]*#\s*([^;\n]+)", re.M
)  # a name, what it is for; more
UNTOLD = "not told"


def license_of(package: str) -> str:
    """Return what an installed package says of its license, in the newest form that it has.

    Raises:
        PackageNotFoundError: it isn't installed.
    """
    found = distribution(package)
    told = found.metadata
    classified = [
        one.split(" :: ")[-1]
        for one in told.get_all("Classifier") or ()
        if one.startswith("License :: ")
    ]
    lines = (told.get("License") or "").split("\n")
    return told.get("License-Expression") or ", ".join(classified) or lines[0] or first_line(found)


def first_line(found: Distribution) -> str:
    """Return the first line of a package's license file."""
    files = (file for file in found.files or () if file.name.upper().startswith("LICENSE"))
    texts = (file.read_text(encoding="utf-8") for file in files)
    return next((text.strip().split("\n")[0] for text in texts), UNTOLD)


class LicenseOf(SphinxRole):
    """The license of one package."""

    def run(self):
        """Return it, or warn where there is no such package."""
        try:
            return [nodes.Text(license_of(self.text))], []
        except PackageNotFoundError:
            LOGGER.warning(
                "{license-of}`%s`: no such package is installed",
                self.text, location=self.get_location(), type="licenses",
            )  # fmt: skip
            return [nodes.Text(self.text)], []


class Packages(SphinxDirective):
    """A table of requirements.txt."""

    has_content = True

    def run(self):
        """Write it as if the page had it."""
        file = Path(self.env.srcdir, "requirements.txt")
        self.env.note_dependency(str(file))
        lines = ["| package | what for | license |", "|---|---|---|"]
        for name, purpose in REQUIRED.findall(file.read_text(encoding="utf-8")):
            lines.append(f"| {name} | {purpose.strip()} | {{license-of}}`{name}` |")
        table = nodes.section()
        self.state.nested_parse(StringList(lines), 0, table)
        return table.children


def setup(app):
    """Offer role and table to the pages."""
    app.add_role("license-of", LicenseOf())
    app.add_directive("packages", Packages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
