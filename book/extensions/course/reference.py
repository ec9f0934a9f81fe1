"""The pages of reference: how to cite the course, packages and their licenses, weights, the API.

* `{cite-this}` is the course's license, if _config.yml names one (`course_license`), and its entry
  for a bibliography, with title, author, year and address from _config.yml.
* `{license-of}`sphinx`` is the license of a package, read from its installed metadata;
  `{packages}` is a table of all packages in requirements.txt, with what each is for.
* `{kept-weights}` is a table of the trained weights and sweeps that the course keeps, read from
  their cards: the package would load torch.
* `{lesson-exercises}` shows the exercises of every lesson that has some, under its heading.
"""

import json
import re
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util.inspect import signature, stringify_signature
from traitlets import HasTraits

from course.pages import add_written, source_folder

# A name, and what it is for, up to a semicolon.
REQUIRED = re.compile(r"^([A-Za-z][\w.-]*)[^#\n]*#\s*([^;\n]+)", re.M)


def license_of(package: str) -> str:
    """Return the license that an installed package names, in the newest form that it has."""
    found = distribution(package)
    told = found.metadata
    classifiers = told.get_all("Classifier") or ()
    classes = [one.split(" :: ")[-1] for one in classifiers if one.startswith("License :: ")]
    files = (file for file in found.files or () if file.name.upper().startswith("LICENSE"))
    texts = [told.get("License") or "", *(file.read_text(encoding="utf-8") for file in files)]
    lines = (text.strip().split("\n")[0] for text in texts if text.strip())
    return told.get("License-Expression") or ", ".join(classes) or next(lines, "not told")


def cite_this(env) -> Iterator[str]:
    config = env.config
    if config.course_license:
        yield from (f"The course is licensed under {config.course_license}.", "")
    address = config.html_baseurl or config.html_theme_options.get("repository_url")
    entry = {"title": f"{{{config.html_title}}}", "author": config.author}
    entry |= {"year": config.copyright, "url": address}
    fields = (f"  {name} = {{{said}}}," for name, said in entry.items() if said)
    yield from ("```bibtex", "@misc{multi-head-attention-course,", *fields, "}", "```")


def packages(env) -> Iterator[str]:
    yield from ("| package | what for | license |", "|---|---|---|")
    required = Path(env.srcdir, "requirements.txt").read_text(encoding="utf-8")
    for name, purpose in REQUIRED.findall(required):
        yield f"| {name} | {purpose.strip()} | {{license-of}}`{name}` |"


def kept_weights(env) -> Iterator[str]:
    yield from ("| file | the command that made it | date |", "|---|---|---|")
    folder = source_folder() / "attncourse" / "data"
    for file in sorted(folder.rglob("*.json")):
        card = json.loads(file.read_text(encoding="utf-8"))
        name = file.relative_to(folder).as_posix()
        yield f"| `{name}` | `{card['command']}` | {card['date']} |"


def lesson_exercises(env) -> Iterator[str]:
    from attncourse.lessons import lessons  # loads torch, which only this page's reading needs

    for name, module in lessons().items():
        yield from (f"### Of lesson {int(name.removeprefix('l'))}", "", "```{eval-rst}")
        for documented in (module.__name__, f"{module.__name__}.figures"):
            if find_spec(documented):
                yield from (f".. automodule:: {documented}", "   :members:", "")
        yield from ("```", "")


def show_arguments(app, what, name, documented, options, arguments, result):
    """Return a widget's own arguments: traitlets would show only (*args, **kwargs)."""
    if what != "class" or not issubclass(documented, HasTraits):
        return None
    taken = signature(documented.__init__, bound_method=True)
    shown = stringify_signature(taken, unqualified_typehints=True, show_return_annotation=False)
    return shown, None


def setup(app):
    app.add_config_value("course_license", "", "env")
    add_written(app, "cite-this", cite_this)
    app.add_role("license-of", lambda kind, raw, name, *_: ([nodes.Text(license_of(name))], []))
    add_written(app, "packages", packages)
    add_written(app, "kept-weights", kept_weights)
    add_written(app, "lesson-exercises", lesson_exercises)
    app.connect("autodoc-process-signature", show_arguments)
