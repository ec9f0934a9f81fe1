"""What the widgets share: browser code put together from files, and the palette handed to it.

A widget's browser code runs from a blob URL and can't import a neighbor, so the files it is made of
are joined here into one module.
"""

import json
from pathlib import Path

from attnlib import palette

FOLDER = Path(__file__).parent


def browser_code(*names: str) -> str:
    """Return one JavaScript module: the palette, then the named files of this folder in turn."""
    colors = {"weightScale": palette.WEIGHT_SCALE, "headColors": len(palette.HEAD_COLORS)}
    parts = [f"const PALETTE = {json.dumps(colors)};"]
    parts += [(FOLDER / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(parts)


def style_sheet(*names: str) -> str:
    """Return one style sheet: the palette as CSS variables, then the named files of this folder."""
    colors = {"query": palette.QUERY_COLOR, "key": palette.KEY_COLOR}
    colors |= {"ink": palette.INK, "muted": palette.MUTED, "line": palette.LINE}
    colors |= {f"head-{i}": color for i, color in enumerate(palette.HEAD_COLORS)}
    light = "".join(f"--attn-{name}: {color};" for name, color in colors.items())
    dark = "".join(f"--attn-{name}: {palette.DARK[color]};" for name, color in colors.items())
    scale = f"--attn-weight-scale: linear-gradient(to right, {', '.join(palette.WEIGHT_SCALE)});"
    # The course's pages and JupyterLab each say in an attribute which theme is on.
    on_dark = 'html[data-theme="dark"] .attn-widget, [data-jp-theme-light="false"] .attn-widget'
    parts = [f".attn-widget {{color-scheme: light; {light}{scale}}}"]
    parts += [f"{on_dark} {{color-scheme: dark; {dark}}}"]
    parts += [(FOLDER / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(parts)
