"""HeadAtlas in a real browser, without a kernel: its order, its heads, its rows; and its file."""

import base64
import re

import numpy as np
import pytest
import torch
from tools.atlases import made_atlas
from tools.browsing import open_page
from tools.engines import FOCUS, wait_for
from tools.widget_pages import TOKEN_MAP_PLACES, unfold

from attnlib import palette
from attnlib.widgets import HeadAtlas


def example(text):
    """An atlas for the tests of what every widget does."""
    atlas, _ = made_atlas(tokens=[text, *"bcdef"], name=text)
    return HeadAtlas(atlas)


def largest(text):
    tokens = [f"token{i}" for i in range(23)] + [text]
    atlas, _ = made_atlas(12, 12, 24, tokens=tokens, name=text)
    return HeadAtlas(atlas)


def set_bytes(buffers, name, change):
    """Change the saved bytes of a trait."""
    buffer = next(buffer for buffer in buffers if buffer["path"] == [name])
    buffer["data"] = base64.b64encode(change(base64.b64decode(buffer["data"]))).decode()


PLACES = {
    *TOKEN_MAP_PLACES,
    "button.attn-tile > bdi.attn-tile-key …",
    "div.attn-text > button.attn-chip title",
    "div.attn-widget > p.attn-title …",
    "button.attn-chip > bdi",
    "li > bdi.attn-key",
    "p.attn-heading > bdi.attn-query",
    "table > caption …",
}
KEY = ("input[type=range]", "ArrowRight")
DAMAGES = {
    "head should be one of 0 to 5, but is 6": lambda state, _: state.update(head=6),
    "pinned should be one of 0 to 5, or -1, but is -2": lambda state, _: state.update(pinned=-2),
    'order should be one of layers, highest, lowest, but is "best"': (
        lambda state, _: state.update(order="best")
    ),
    "above should be a whole number from 0 to 100, but is 0.5": (
        lambda state, _: state.update(above=0.5)
    ),
    "patterns should be a list of scores with name and rule": (
        lambda state, _: state["patterns"][0].pop("rule")
    ),
    "layer_names should be 2 strings, but there are 3": (
        lambda state, _: state["layer_names"].append("layer")
    ),
    "maps should be 216 numbers in 216 bytes, but is 215": (
        lambda _, buffers: set_bytes(buffers, "maps", lambda data: data[1:])
    ),
    "top_keys should be places from 0 to 5, but one is beyond": (
        lambda _, buffers: set_bytes(buffers, "top_keys", lambda data: b"\6\0" + data[2:])
    ),
    "scores holds a number that isn't finite": (
        lambda _, buffers: set_bytes(buffers, "scores", lambda data: b"\xff" * 4 + data[4:])
    ),
}


def short(number, digits=2):
    return f"{number:.{digits}f}".removeprefix("0")


def painted(canvas, cells):
    """The colors [cells, cells, 4] of a canvas, once it is drawn."""
    canvas.page.wait_for_function("canvas => canvas.width > 0 && canvas.dataset", arg=canvas.element_handle())
    pixels = canvas.evaluate(
        "c => Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)"
    )
    return torch.tensor(pixels, dtype=torch.float64).view(cells, cells, 4)


def color_of(shares):
    """The palette's colors [..., 3] of shares, linear between its stops."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in palette.WEIGHT_SCALE])
    places = np.linspace(0, 1, len(stops))
    colors = [np.interp(shares.numpy(), places, stops[:, channel]) for channel in range(3)]
    return torch.from_numpy(np.stack(colors, -1))


def tile_names(page):
    return page.locator(".attn-tile-title span:first-child").all_inner_texts()


def tile_numbers(page):
    return page.locator(".attn-tile .attn-number").all_inner_texts()


def name_of(head, h):
    return f"{head // h + 1}.{head % h + 1}"


def row_of(page, place=0):
    """The names and numbers of a row's bars."""
    lines = page.locator(".attn-keys").nth(place).locator("li")
    return [re.split(r"\n", text) for text in lines.all_inner_texts()]
