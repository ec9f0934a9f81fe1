"""HeadAtlas's Python side: its bytes, its traits, its refusals, and the file that it writes."""

import base64
import dataclasses
import json
import re
import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch
from tools.atlases import made_atlas
from tools.refusing import assert_refused, refusals

from attncourse.widgets import HeadAtlas
from attncourse.widgets._browser_code import page_script


def numbers(widget, name, dtype, *shape):
    """The numbers that the browser reads, in float64."""
    found = np.frombuffer(widget.get_state()[name], dtype).reshape(shape)
    return torch.from_numpy(found.astype(np.float64))


@pytest.mark.parametrize("T", [6, 130])
def test_state_holds_the_atlas_as_bytes(T):
    atlas, _ = made_atlas(T=T)
    widget = HeadAtlas(atlas)
    cells, k = (6, 6) if T == 6 else (44, 8)
    assert (widget.h, widget.T, widget.cells, widget.k) == (3, T, cells, k)
    assert (widget.tokens, widget.causal, widget.layers) == (list(atlas.tokens), True, [0, 1])
    shares = (numbers(widget, "maps", "u1", 2, 3, cells, cells) / 255) ** 2
    assert (shares - atlas.maps).abs().max() < 0.004
    assert (shares - atlas.maps)[atlas.maps < 0.01].abs().max() < 0.0005
    weights = numbers(widget, "top_weights", "<u2", 2, 3, T, k) / 65535
    assert (weights - atlas.top_weights).abs().max() < 1e-5
    keys = numbers(widget, "top_keys", "<u2", 2, 3, T, k)
    assert torch.equal(keys, atlas.top_keys.double().where(atlas.top_keys >= 0, 65535))
    assert torch.equal(numbers(widget, "value_norms", "<f4", 2, 3, T), atlas.value_norms.double())
    scores = numbers(widget, "scores", "<f4", 3, 3, 2, 3)
    for found, expected in zip(scores, atlas.scores.values(), strict=True):
        parts = torch.stack([expected.mean, expected.spread, expected.baseline])
        torch.testing.assert_close(found, parts, atol=1e-6, rtol=1e-6)


def test_it_says_what_the_scores_are_and_of_which_texts():
    widget = HeadAtlas(made_atlas()[0])
    assert [pattern["name"] for pattern in widget.patterns] == [
        "previous token", "best offset", "entropy",
    ]  # fmt: skip
    assert [pattern["lower"] for pattern in widget.patterns] == [False, False, True]
    assert widget.patterns[1]["offsets"] == [-1] * 6 and widget.patterns[0]["offsets"] == []
    assert [(pattern["texts"], pattern["rows"]) for pattern in widget.patterns] == [(3, 40)] * 3
    assert re.findall(r"\d+", " ".join(widget.about)) == [*"232926"]


def test_some_layers_are_shown_in_the_order_given():
    atlas, _ = made_atlas(L=4)
    all_of_it, some = HeadAtlas(atlas), HeadAtlas(atlas, layers=[3, 1])
    assert (some.layers, some.layer_names) == ([3, 1], ["layer.3", "layer.1"])
    assert re.findall(r"\d+", some.about[0])[:3] == [*"432"]
    each = {"maps": "u1", "top_keys": "<u2", "top_weights": "<u2", "value_norms": "<f4"}
    for name, dtype in each.items():
        shape = (3, 6) if name == "value_norms" else (3, 6, 6)
        whole = numbers(all_of_it, name, dtype, 4, *shape)
        assert torch.equal(numbers(some, name, dtype, 2, *shape), whole[[3, 1]])
    whole = numbers(all_of_it, "scores", "<f4", 3, 3, 4, 3)
    assert torch.equal(numbers(some, "scores", "<f4", 3, 3, 2, 3), whole[:, :, [3, 1]])
    assert some.patterns[1]["offsets"] == [-1] * 6


def test_faint_weights_are_lifted_where_a_cell_holds_several_tokens():
    assert not HeadAtlas(made_atlas(T=64)[0]).lifted
    assert HeadAtlas(made_atlas(T=65)[0]).lifted


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


def saved(atlas, folder, **moves):
    """Return the text of the file that an atlas is saved in."""
    widget = HeadAtlas(atlas)
    for name, value in moves.items():
        setattr(widget, name, value)
    widget.save_html(folder / "atlas.html")
    return (folder / "atlas.html").read_text(encoding="utf-8")


def scripts_of(page, kind):
    return re.findall(rf'<script type="{kind}">(.*?)</script>', page, re.DOTALL)


def test_144_heads_of_512_tokens_are_one_file_of_less_than_5_mb(tmp_path):
    assert len(saved(made_atlas(12, 12, 512, causal=False)[0], tmp_path).encode()) < 5_000_000


def test_the_file_holds_the_widget_as_it_stands(tmp_path):
    atlas = made_atlas()[0]
    page = saved(atlas, tmp_path, head=4, order="lowest")
    (told,) = map(json.loads, scripts_of(page, "application/json"))
    assert (told["state"]["head"], told["state"]["order"]) == (4, "lowest")
    assert told["module"] == "head_atlas/widget.js"
    (packed,) = scripts_of(page, "text/plain")
    held = zlib.decompress(base64.b64decode(packed))
    state = HeadAtlas(atlas).get_state()
    for name, size in told["sizes"].items():
        assert held[:size] == state[name]
        held = held[size:]
    assert held == b""
    assert {*told["state"], *told["sizes"]} == {*HeadAtlas.class_own_traits(sync=True)}
    assert page_script("head_atlas") in page


def test_the_file_names_the_model_the_texts_the_day_and_the_tools_and_no_other_host(tmp_path):
    page = saved(made_atlas()[0], tmp_path)
    assert "<title>Atlas of heads: made by chance</title>" in page
    assert '<html lang="en">' in page
    assert re.search(r"Made on \d{4}-\d\d-\d\d with attnlib [\d.]+, PyTorch [\d.]+", page)
    assert "3 tokens: <bdi>one</bdi>" in page and "6 tokens: <bdi>t0</bdi>" in page
    assert page.count("Weights show where a head looks, not why") == 1
    code = page.replace("http://www.w3.org/2000/svg", "")  # a name, of no page
    assert not re.search(r"https?:|src=|@import|url\(", code)


def test_widgets_need_no_atlas_to_be_imported():
    """attncourse.atlas writes files by HeadAtlas, so its arrow points here."""
    check = "import sys, attncourse.widgets; sys.exit('attncourse.atlas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
