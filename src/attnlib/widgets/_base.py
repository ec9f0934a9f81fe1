"""What the widgets share: browser code put together from files, and the palette handed to it.

A widget's browser code runs from a blob URL and can't import a neighbor, so the files it is made of
are joined here into one module.
"""

import json
from pathlib import Path

import traitlets

from attnlib import palette

FOLDER = Path(__file__).parent


def browser_code(*names: str) -> str:
    """Return one JavaScript module: the palette, then the named files of this folder in turn."""
    colors = {"weightScale": palette.WEIGHT_SCALE, "headColors": len(palette.HEAD_COLORS)}
    parts = [f"const PALETTE = {json.dumps(colors)};"]
    parts += [(FOLDER / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(parts)


def style_sheet(name: str, *files: str) -> str:
    """Return the style sheet of one widget: the palette as CSS variables, then the named files.

    In the files `.attn-widget` means the widget itself. Here it becomes this widget's own class, so
    that no sheet reaches another widget, and their order on a page means nothing.

    Args:
        name: the widget's class without "attn-", as in "head-explorer".
        files: of this folder; a later one wins.
    """
    colors = {"query": palette.QUERY_COLOR, "key": palette.KEY_COLOR}
    colors |= {"ink": palette.INK, "muted": palette.MUTED, "line": palette.LINE}
    colors |= {f"head-{i}": color for i, color in enumerate(palette.HEAD_COLORS)}
    light = "".join(f"--attn-{key}: {color};" for key, color in colors.items())
    dark = "".join(f"--attn-{key}: {palette.DARK[color]};" for key, color in colors.items())
    scale = f"--attn-weight-scale: linear-gradient(to right, {', '.join(palette.WEIGHT_SCALE)});"
    # The course's pages and JupyterLab each say in an attribute which theme is on.
    on_dark = 'html[data-theme="dark"] .attn-widget, [data-jp-theme-light="false"] .attn-widget'
    parts = [f".attn-widget {{color-scheme: light; {light}{scale}}}"]
    parts += [f"{on_dark} {{color-scheme: dark; {dark}}}"]
    parts += [(FOLDER / file).read_text(encoding="utf-8") for file in files]
    return "\n".join(parts).replace(".attn-widget", f".attn-widget.attn-{name}")


def summary_trait(sentence: str) -> traitlets.Unicode:
    """Return the fixed trait that says in a sentence what a widget shows, where no script runs."""
    return traitlets.Unicode(sentence, read_only=True).tag(sync=True)


def set_fixed(widget: traitlets.HasTraits, values: dict[str, object]) -> None:
    """Set traits that nobody may change later.

    Done before ipywidgets' own `__init__`, so that the browser gets them with the first state.
    """
    for name, value in values.items():
        widget.set_trait(name, value)
