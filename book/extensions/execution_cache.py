"""Editing what a page uses executes it again; editing its text, or what it doesn't use, doesn't.

Jupyter Book keeps executed notebooks in a cache that knows the code cells of a page, but not what
they import. So each page has a cache of its own, named after all else that decides its outputs.
"""

import hashlib
import platform
from copy import deepcopy
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from weakref import WeakKeyDictionary

from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode
from used_files import PACKAGE, UsedFiles

# What computes, draws and writes the outputs, beside the package.
LIBRARIES = ("torch", "numpy", "safetensors", "matplotlib", "ipython", "ipywidgets", "anywidget")
LIBRARIES += ("transformers", "myst-nb")  # a reader's own models; glue

FOLDERS = WeakKeyDictionary()  # of each build: page -> its folder, which takes long to find out


def package_folder() -> Path:
    """Return the folder of the attnlib that the lessons import, without importing it."""
    return Path(find_spec(PACKAGE).origin).parent


def read_notebook(page: Path) -> NotebookNode | None:
    """Return a page as a notebook, read as the site's build reads it; None if it has no cells."""
    return deepcopy(_parsed(str(page), page.read_text(encoding="utf-8")))


@lru_cache(maxsize=64)  # a build asks for each page several times, and parsing takes long
def _parsed(page: str, text: str) -> NotebookNode | None:
    reader = create_nb_reader(page, MdParserConfig(), NbParserConfig(), text)
    return reader and reader.read(text)


def code_of(notebook: NotebookNode) -> str:
    """Return what its cells execute, as one text."""
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def fingerprint(code: str, package: Path) -> str:
    """Return a short hash of the files that some code uses, and of the libraries."""
    used = UsedFiles(code, package)
    digest = hashlib.sha256(platform.python_version().encode())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    for link in sorted(used.links):
        digest.update(link.encode())
    for path in sorted(used.files):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(build_folder: Path, page: Path, package: Path | None = None) -> Path | None:
    """Return where a page that was executed with this package is kept; None if it has no cells."""
    notebook = read_notebook(page)
    if notebook is None:
        return None
    key = fingerprint(code_of(notebook), package or package_folder())
    return build_folder / ".jupyter_cache" / f"{page.stem}-{key}"


def folder_of(app, name):
    """Return the cache's folder for a page of the site; empty if it has no cells."""
    known = FOLDERS.setdefault(app, {})
    if name not in known:
        page = Path(app.env.doc2path(name))
        known[name] = str(cache_folder(Path(app.outdir).parent, page) or "")
    return known[name]


def choose_cache(app, name, source):
    """Tell myst-nb where a page's cache is, before it reads the page."""
    folder = app.env.metadata[name]["execution_cache"] = folder_of(app, name)
    app.env.mystnb_config = app.env.mystnb_config.copy(execution_cache_path=folder)


def pages_to_read_again(app, env, added, changed, removed):
    """Return the pages that were read before, but whose outputs may be others now."""
    read = env.found_docs - added - changed
    return [name for name in read if folder_of(app, name) != env.metadata[name]["execution_cache"]]


def setup(app):
    """Look at each page before it is read, and whether it must be."""
    app.connect("env-get-outdated", pages_to_read_again)
    app.connect("source-read", choose_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
