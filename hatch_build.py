"""The wheel's browser code goes without its comments: a notebook fetches it before its first line.

They are a fifth of that code. The site publishes it without them, too.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMENT = re.compile(r"^[ \t]*(//.*|/\*\*(?:.|\n)*?\*/)\n", re.MULTILINE)  # on lines of its own


class LeanBrowserCode(BuildHookInterface):
    """Puts copies without comments into the wheel, in place of the files."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Make the copies; an editable install reads the files themselves."""
        if version == "editable":
            return
        self.copies = TemporaryDirectory()
        sources = Path(self.root, "src")
        for source in sources.rglob("*.js"):
            inside = source.relative_to(sources)
            copy = Path(self.copies.name, inside)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(COMMENT.sub("", source.read_text(encoding="utf-8")), encoding="utf-8")
            build_data["force_include"][str(copy)] = inside.as_posix()

    def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
        """Take the copies away."""
        if version != "editable":
            self.copies.cleanup()
