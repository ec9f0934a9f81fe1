"""Editing the package executes the lessons again; editing a lesson's text doesn't.

Jupyter Book keeps executed notebooks in a cache that knows the code cells of a lesson, but not the
package they import. So the cache's folder is named after what else decides the outputs.
"""

import hashlib
import platform
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SUFFIXES = {".py"}  # a page takes the widgets' code and style from the package: widget_code.py
LIBRARIES = ("torch", "numpy", "matplotlib", "anywidget")


def package_folder() -> Path:
    """Return the folder of the attnlib that the lessons import, without importing it."""
    return Path(find_spec("attnlib").origin).parent


def fingerprint(package: Path) -> str:
    """Return a short hash of the package's sources and of the libraries that draw and compute."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    for path in sorted(package.rglob("*")):
        if path.suffix in SUFFIXES:
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(build_folder: Path, package: Path | None = None) -> Path:
    """Return where notebooks that were executed with this package are kept."""
    return build_folder / ".jupyter_cache" / fingerprint(package or package_folder())


def setup(app):
    """Tell myst-nb where its cache is, before it reads its settings."""

    def choose_cache(app, config):
        config.nb_execution_cache_path = str(cache_folder(Path(app.outdir).parent))

    app.connect("config-inited", choose_cache)
    return {"parallel_read_safe": True}
