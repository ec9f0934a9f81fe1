"""Building the site, and small sites that share its configuration."""

import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from bs4 import BeautifulSoup

from tools import ROOT


def build(
    project: Path, output: Path | None = None, *, imports_from: Path | None = None
) -> subprocess.CompletedProcess:
    """Run `jupyter-book build` on a project, as readers do; warnings are errors, and all are told.

    Args:
        project: where _config.yml and _toc.yml are.
        output: pages land in output/_build/html; in the project's own folder if none is given.
        imports_from: a folder with packages that the build is to use.
    """
    program = Path(sysconfig.get_path("scripts")) / "jupyter-book"
    command = [sys.executable, program, "build", project, "--path-output", output or project]
    environment = dict(os.environ) | ({"PYTHONPATH": str(imports_from)} if imports_from else {})
    return subprocess.run(
        [*command, "-W", "--keep-going"],
        env=environment, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip


# What a site takes from the course, and the package whose wheel it serves if it has an address.
SHARED = (
    "book/extensions", "book/assets", "book/templates",
    "pyproject.toml", "README.md", "src",
)  # fmt: skip


def small_project(folder: Path, pages: dict[str, str], *, address="", repository="") -> Path:
    """Write a site of a few pages (name -> MyST text) that is configured as the course is.

    Args:
        address: where the site is going to be published; the course has no such address yet.
        repository: the address of its source; the course has none yet either.
    """
    book = folder / "book"
    book.mkdir(parents=True)
    for shared in SHARED:
        (folder / shared).symlink_to(ROOT / shared)
    settings = (ROOT / "_config.yml").read_text(encoding="utf-8")
    settings = settings.replace('\n  baseurl: ""\n', f'\n  baseurl: "{address}"\n')
    settings = settings.replace('\n  url: ""\n', f'\n  url: "{repository}"\n')
    (folder / "_config.yml").write_text(settings, encoding="utf-8")
    (book / "references.bib").touch()
    for name, text in pages.items():
        (book / f"{name}.md").write_text(text, encoding="utf-8")
    root, *others = pages
    chapters = "".join(f"\n- file: book/{name}" for name in others)
    toc = f"format: jb-book\nroot: book/{root}\n" + (f"chapters:{chapters}\n" if others else "")
    (folder / "_toc.yml").write_text(toc, encoding="utf-8")
    return folder


@cache
def read(page: Path) -> BeautifulSoup:
    """Return a built page; who reads it changes nothing in it."""
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
