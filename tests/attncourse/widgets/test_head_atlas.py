"""HeadAtlas's Python side: its bytes, its traits, its refusals, and the file that it writes."""

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from tools.atlases import made_atlas
from tools.refusing import assert_refused, refusals

from attncourse.widgets import HeadAtlas


def numbers(widget, name, dtype, *shape):
    """The numbers that the browser reads, in float64."""
    found = np.frombuffer(widget.get_state()[name], dtype).reshape(shape)
    return torch.from_numpy(found.astype(np.float64))


def test_some_layers_are_shown_in_the_order_given():
    atlas, _ = made_atlas(L=4)
    all_of_it, some = HeadAtlas(atlas), HeadAtlas(atlas, layers=[3, 1])
    assert (some.layers, some.layer_names) == ([3, 1], ["layer.3", "layer.1"])
    assert re.findall(r"\d+", " ".join(all_of_it.about)) == [*"432926"]
    assert re.findall(r"\d+", some.about[0])[:3] == [*"432"]
    each = {"maps": "u1", "top_keys": "<u2", "top_weights": "<u2", "value_norms": "<f4"}
    for name, dtype in each.items():
        shape = (3, 6) if name == "value_norms" else (3, 6, 6)
        whole = numbers(all_of_it, name, dtype, 4, *shape)
        assert torch.equal(numbers(some, name, dtype, 2, *shape), whole[[3, 1]])
    whole = numbers(all_of_it, "scores", "<f4", 3, 3, 4, 3)
    assert torch.equal(numbers(some, "scores", "<f4", 3, 3, 2, 3), whole[:, :, [3, 1]])


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
    ("L", "h", "T", "words"),
    [
        (41, 25, 3, ["1,024", "41 x 25", "layers=range(40)"]),
        (32, 16, 512, ["10 MB", "32 x 16", "10.5 MB", "layers=range(30)"]),
        (1, 1, 1025, ["1024 tokens", "1025"]),
    ],
)
def test_what_no_page_can_hold_is_refused_with_a_way(L, h, T, words):
    k, cells = min(8, T), len(torch.arange(T).split(-(-T // 64)))
    numbers = torch.zeros(1).expand(L, h)
    atlas = dataclasses.replace(
        ATLAS, layer_names=("layer",) * L, texts=(("t",) * T,), shown=0, value_norms=None,
        scores={"entropy": dataclasses.replace(
            ATLAS.scores["entropy"], mean=numbers, spread=numbers, baseline=numbers
        )},
        maps=torch.zeros(1).expand(L, h, cells, cells),
        top_keys=torch.zeros(1, dtype=torch.int32).expand(L, h, T, k),
        top_weights=torch.zeros(1).expand(L, h, T, k),
    )  # fmt: skip
    assert_refused(lambda: HeadAtlas(atlas), words, ValueError)
    if way := re.search(r"layers=range\((\d+)\)", words[-1]):
        assert len(HeadAtlas(atlas, layers=range(int(way[1]))).layers) == int(way[1])
        with pytest.raises(ValueError):
            HeadAtlas(atlas, layers=range(int(way[1]) + 1))


def test_144_heads_of_512_tokens_are_a_file_below_5_mb_that_says_how_it_was_made(tmp_path):
    HeadAtlas(made_atlas(12, 12, 512, causal=False)[0]).save_html(tmp_path / "atlas.html")
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 5_000_000
    assert '<html lang="en">' in page
    assert re.search(r"Made on \d{4}-\d\d-\d\d with attnlib [\d.]+, PyTorch [\d.]+", page)
    assert "3 tokens: <bdi>one</bdi>" in page and "512 tokens: <bdi>t0</bdi>" in page
    code = page.replace("http://www.w3.org/2000/svg", "")  # a name, of no page
    assert not re.search(r"https?:|src=|@import|url\(", code)


def test_widgets_need_no_atlas_to_be_imported():
    """attncourse.atlas writes files by HeadAtlas, so its arrow points here."""
    check = "import sys, attncourse.widgets; sys.exit('attncourse.atlas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
