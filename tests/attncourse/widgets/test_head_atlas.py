"""HeadAtlas's Python side: its bytes, its traits, its refusals, and the file that it writes."""

import re

import numpy as np
import pytest
import torch
from tools.atlases import made_atlas
from tools.refusing import assert_refused, refusals

from attncourse.widgets import HeadAtlas
from attncourse.widgets.head_atlas import state


def numbers(widget, name, dtype, *shape):
    return np.frombuffer(widget.get_state()[name], dtype).reshape(shape)


def test_some_layers_are_shown_in_the_order_given():
    atlas, _ = made_atlas(L=4)
    whole, some = HeadAtlas(atlas), HeadAtlas(atlas, layers=[3, 1])
    assert (some.layers, some.layer_names) == ([3, 1], ["layer.3", "layer.1"])
    assert re.findall(r"\d+", " ".join(whole.about)) == [*"432926"]
    assert re.findall(r"\d+", some.about[0])[:3] == [*"432"]
    each = {"maps": "u1", "top_keys": "<u2", "top_weights": "<u2", "value_norms": "<f4"}
    for name, dtype in each.items():
        found = numbers(some, name, dtype, 2, -1)
        assert np.array_equal(found, numbers(whole, name, dtype, 4, -1)[[3, 1]])
    found = numbers(some, "scores", "<f4", 3, 3, 2, 3)
    assert np.array_equal(found, numbers(whole, "scores", "<f4", 3, 3, 4, 3)[:, :, [3, 1]])


ATLAS = made_atlas()[0]


def of_layers(layers):
    return HeadAtlas(ATLAS, layers=layers)


test_bad_input_is_refused_by_name = refusals(
    {
        TypeError: {HeadAtlas: {"atlas": [torch.ones(2, 2)]}, of_layers: {"layers": [["0"], 1]}},
        ValueError: {of_layers: {"layers": [[2], [0, 0], []]}},
    }
)


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("MOST_HEADS", 7, ["7 heads", "4 x 3", "layers=range(2)"]),
        ("MOST_BYTES", 1500, ["4 x 3", "layers=range(2)"]),  # a head has 36 + 6 * 6 * 4 + 6 * 4
        ("MOST_TOKENS", 5, ["5 tokens", "6"]),
    ],
)
def test_what_no_page_can_hold_is_refused_with_a_way(monkeypatch, limit, most, words):
    monkeypatch.setattr(state, limit, most)
    atlas, _ = made_atlas(L=4)
    assert_refused(lambda: HeadAtlas(atlas), words, ValueError)
    if "layers=range(2)" in words:
        assert HeadAtlas(atlas, layers=range(2)).layers == [0, 1]


def test_144_heads_of_512_tokens_are_a_file_below_5_mb_that_says_how_it_was_made(tmp_path):
    HeadAtlas(made_atlas(12, 12, 512, causal=False)[0]).save_html(tmp_path / "atlas.html")
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 5_000_000
    assert re.search(r"Made on \d{4}-\d\d-\d\d with attnlib [\d.]+, PyTorch [\d.]+", page)
    assert "3 tokens: <bdi>one</bdi>" in page and "512 tokens: <bdi>t0</bdi>" in page
    code = page.replace("http://www.w3.org/2000/svg", "")  # a name, of no page
    assert not re.search(r"https?:|src=|@import|url\(", code)
