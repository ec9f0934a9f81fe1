"""The site serves attnlib's wheel, so that a downloaded notebook can install it.

Only a site that knows its own address does (html: baseurl: in _config.yml): without one no notebook
could name the wheel.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

from sphinx.errors import ExtensionError

FOLDER = "_static"


def address_of_wheel(app) -> str:
    """Return where the wheel will be; empty if the site has no address."""
    if not app.config.html_baseurl:
        return ""
    text = (Path(app.srcdir) / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    file = f"{project['name']}-{project['version']}-py3-none-any.whl"
    return f"{app.config.html_baseurl.rstrip('/')}/{FOLDER}/{file}"


def build_wheel(app, exception):
    """Build the wheel of this checkout into the site."""
    if exception or app.builder.format != "html" or not app.config.html_baseurl:
        return
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", Path(app.outdir) / FOLDER, app.srcdir]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ExtensionError(f"attnlib's wheel can't be built:\n{result.stderr}")


def setup(app):
    """Run when all pages are written."""
    app.connect("build-finished", build_wheel)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
