"""Maps that lead from the theme's files to their sources are not published, nor asked for."""

import re
from pathlib import Path

MENTION = re.compile(r"\n?(?://# sourceMappingURL=\S+|/\*# sourceMappingURL=\S+ ?\*/)\s*$")


def leave_out(app, exception):
    """Remove the maps, and the last line of the files that name one."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    for source_map in static.rglob("*.map"):
        source_map.unlink()
    for file in (*static.rglob("*.js"), *static.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        without = MENTION.sub("\n", text)
        if without != text:
            file.write_text(without, encoding="utf-8")


def setup(app):
    """Run when all files are in place, after those that write them anew."""
    app.connect("build-finished", leave_out, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
