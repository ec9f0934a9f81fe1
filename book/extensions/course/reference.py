"""The pages of reference: packages and their licenses, kept weights, the API.

* `{license-of}`sphinx`` is the license of one package, as the metadata that is installed with it
  tell it; `{packages}` a table of all that requirements.txt names, with what each is for.
* `{kept-weights}` is a table of the trained weights and sweeps that the course keeps. Their cards
  are read, not the package, which would load torch.
* `{lesson-exercises}` shows the exercises of every lesson that has some, each lesson under a
  heading. Widgets are shown as they are made: traitlets would have them say `*args, **kwargs`.
"""

import json
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.inspect import signature, stringify_signature
from traitlets import HasTraits

from course.pages import add_written, source_folder

LOGGER = logging.getLogger(__name__)
# A name, what it is for; more.
REQUIRED = re.compile(r"^([A-Za-z][\w.-]*)[^#\n]*#\s*([^;\n]+)", re.M)
UNTOLD = "not told"
LESSON = """\
### Of lesson {number}

```{{eval-rst}}
.. automodule:: {module}
   :members:
{figures}
```
"""
FIGURES = """
.. automodule:: {module}.figures
   :members:
"""


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
        try:
            return [nodes.Text(license_of(self.text))], []
        except PackageNotFoundError:
            LOGGER.warning(
                "{license-of}`%s`: no such package is installed",
                self.text, location=self.get_location(), type="licenses",
            )  # fmt: skip
            return [nodes.Text(self.text)], []


def packages(env) -> Iterator[str]:
    """Give a table of requirements.txt."""
    yield from ("| package | what for | license |", "|---|---|---|")
    required = Path(env.srcdir, "requirements.txt").read_text(encoding="utf-8")
    for name, purpose in REQUIRED.findall(required):
        yield f"| {name} | {purpose.strip()} | {{license-of}}`{name}` |"


def kept_weights(env) -> Iterator[str]:
    """Give a table of cards."""
    yield from ("| file | the command that made it | date |", "|---|---|---|")
    folder = source_folder() / "attncourse" / "data"
    for file in sorted(folder.rglob("*.json")):
        card = json.loads(file.read_text(encoding="utf-8"))
        name = file.relative_to(folder).as_posix()
        yield f"| `{name}` | `{card['command']}` | {card['date']} |"


def lesson_exercises(env) -> Iterator[str]:
    """Give what autodoc says of each lesson's exercises and figures."""
    from attncourse.lessons import lessons  # loads torch, which only this page's reading needs

    for name, module in lessons().items():
        number = int(name.removeprefix("l"))
        figures = FIGURES if find_spec(f"{module.__name__}.figures") else ""
        text = LESSON.replace("{figures}", figures)
        yield from text.format(number=number, module=module.__name__).splitlines()
        yield ""


def show_arguments(app, what, name, documented, options, arguments, result):
    """Return the signature of a class with traits as its `__init__` has it."""
    if what != "class" or not issubclass(documented, HasTraits):
        return None
    taken = signature(documented.__init__, bound_method=True)
    shown = stringify_signature(taken, unqualified_typehints=True, show_return_annotation=False)
    return shown, None


def setup(app):
    """Offer roles and tables to the pages, and look at every signature before it is written."""
    app.add_role("license-of", LicenseOf())
    add_written(app, "packages", packages)
    add_written(app, "kept-weights", kept_weights)
    add_written(app, "lesson-exercises", lesson_exercises)
    app.connect("autodoc-process-signature", show_arguments)
