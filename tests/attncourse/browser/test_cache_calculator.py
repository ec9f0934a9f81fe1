"""CacheCalculator in a real browser, without a kernel: its numbers, its bars, its controls."""

import re

import pytest
from tools.head_labs import CELLS
from tools.widget_pages import numbers_in, said, unfold

from attncourse.widgets import CacheCalculator
from attncourse.widgets.cache_calculator.widget import MODELS

GIB = 2**30
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": GIB, "TiB": 2**40, "PiB": 2**50}


def example(text):
    return CacheCalculator()


def largest(text):
    widest = {"layers": 128, "num_heads": 128, "d_k": 512, "latent": (2048, 512)}
    return CacheCalculator(**widest, tokens=2**20, sequences=128, bytes_per_number=4, memory=1024)


PLACES = set()
KEY = ("[type=range]", "ArrowRight")
DAMAGES = {
    "layers should be": {"layers": 0},
    "KV heads that divide them": {"heads": [12, 5]},
    "latent should be": {"latent": [64]},
    "bytes_per_number should be": {"bytes_per_number": 8},
    "models should be": {"models": []},
}


def size(text):
    """A size that is told: "1.25 GiB", in bytes."""
    number, unit = re.search(r"([\d.]+) (bytes|[KMGTP]iB)$", text).groups()
    assert float(number) < 1024  # of the largest unit that does
    return float(number) * UNITS[unit]


def rounded(number):
    return pytest.approx(number, rel=0.005)  # to three digits


# What sliders that are to be seen say, by their names; and what stands in each row, and its bar.
SLIDERS = """inputs => Object.fromEntries(inputs.filter((input) => input.checkVisibility()).map(
  (input) => [input.closest("label").firstChild.textContent, input.ariaValueText]))"""
BARS = """bars => bars.map((bar) => [bar.lastChild.textContent,
  bar.querySelector(".attn-bar").style.width, bar.ariaCurrent === "true"])"""


def ways_on(page):
    """The ways to share heads: name -> the KV heads or latent numbers that they keep."""
    texts = page.locator(".attn-ways li > span:first-child").all_inner_texts()
    return {text.split()[0]: [*map(int, numbers_in(text))] for text in texts}


def assert_shows(page, model=None, **sizes):
    """Fail unless bars, table, formula, words and controls are of a calculator of Python's."""
    widget = CacheCalculator(model or "GPT-2 small", **sizes)
    same = ("layers", "d_k", "tokens", "sequences", "bytes_per_number", "memory")
    given = {name: getattr(widget, name) for name in same} | {"num_heads": widget.heads[0]}
    ways = {
        name: CacheCalculator(**given, latent=kept)
        if name == "MLA"
        else CacheCalculator(**given, num_kv_heads=kept[0], latent=())
        for name, kept in ways_on(page).items()
    }
    most, mha = max(way.bytes_in_all for way in ways.values()), ways["MHA"].bytes_in_all
    bars = page.locator(".attn-ways li").evaluate_all(BARS)
    rows = page.locator("tbody tr").evaluate_all(CELLS)
    for (name, way), (told, length, is_marked), row in zip(ways.items(), bars, rows, strict=True):
        in_all, per_token = way.bytes_in_all, way.bytes_per_token
        assert size(told) == rounded(in_all)
        assert numbers_in(length) == rounded([100 * in_all / most])
        is_own = way.latent == widget.latent and (name == "MLA" or way.heads == widget.heads)
        assert is_marked == is_own
        words, layer, token, sequence, total, share, fits = row
        assert words.split(",")[0] == name and numbers_in(words) == (way.latent or way.heads[1:])
        per_layer = per_token // way.layers // way.bytes_per_number
        fitting = way.memory * GIB // (per_token * way.tokens)
        assert numbers_in(f"{layer} {token} {fits}") == [per_layer, per_token, fitting]
        assert [size(sequence), size(total)] == rounded([per_token * way.tokens, in_all])
        assert float(share) == rounded(in_all / mha)

    first, second = page.locator(".attn-formula p").all_inner_texts()
    kind = widget.latent or [2, widget.heads[1], widget.d_k]
    factors = [widget.layers, *kind, widget.bytes_per_number, widget.bytes_per_token]
    assert numbers_in(first)[:-1] == factors
    assert numbers_in(second)[1:3] == [widget.tokens, widget.sequences]
    in_all = second.split(" = ")[1]
    assert size(in_all) == rounded(widget.bytes_in_all)
    assert f" {in_all} " in said(page)
    fitting = widget.memory * GIB // (widget.bytes_per_token * widget.tokens)
    fits = [widget.memory, fitting] if fitting else [widget.memory]
    assert numbers_in(said(page))[-len(fits) :] == fits

    told = page.locator("[type=range]").evaluate_all(SLIDERS)
    expected = {
        "Layers": widget.layers, "Head width": widget.d_k, "Query heads": widget.heads[0],
        "Tokens": widget.tokens, "Sequences": widget.sequences, "Memory": widget.memory,
        **({} if widget.latent else {"KV heads": widget.heads[1]}),
        **dict(zip(("Latent vector", "Position key"), widget.latent, strict=False)),
    }  # fmt: skip
    assert {name: numbers_in(text)[0] for name, text in told.items()} == expected
    assert page.get_by_role("checkbox").is_checked() == bool(widget.latent)
    pressed = page.locator("button[aria-pressed=true]").all_inner_texts()
    assert pressed == [*[model] * bool(model), f"{8 * widget.bytes_per_number} bits"]


def test_heads_are_shared_in_the_usual_ways(show):
    usual = {"MHA": [12], "GQA": [6], "MQA": [1], "MLA": [256, 32]}
    cases = [
        ({"num_heads": 12, "num_kv_heads": 3}, usual | {"GQA": [3]}),
        ({"num_heads": 121}, usual | {"MHA": [121], "GQA": [11]}),  # nothing up to 8 divides it
        ({"num_heads": 7}, {"MHA": [7], "MQA": [1], "MLA": [256, 32]}),
        ({"num_heads": 1}, {"MHA": [1], "MLA": [256, 32]}),
        ({"latent": (100, 3)}, usual | {"MLA": [100, 3]}),
    ]
    page = show(*(CacheCalculator(**sizes) for sizes, _ in cases))
    for root, (_, ways) in zip(page.locator(".attn-widget").all(), cases, strict=True):
        assert ways_on(root) == ways


MOVES = [  # a control, a key, and what it changes
    ("Layers", "ArrowRight", {"layers": 13}),
    ("Head width", "ArrowRight", {"d_k": 64}),
    ("Query heads", "ArrowRight", {"num_heads": 16}),  # none are shared, and none are now
    ("KV heads", "ArrowLeft", {"num_kv_heads": 8}),
    ("Query heads", "ArrowLeft", {"num_heads": 12, "num_kv_heads": 6}),  # 8 don't divide 12
    ("Sequences", "ArrowRight", {"sequences": 2}),
    ("Tokens", "ArrowRight", {"tokens": 1536}),
    ("Memory", "Home", {"memory": 1}),
    ("Tokens", "End", {"tokens": 2**20}),  # not one of them fits
    ("KV heads", "Home", {"num_kv_heads": 1}),  # MQA, and no longer once there is a vector
    ("MLA", "Space", {"latent": (256, 32)}),
    ("Position key", "Home", {"latent": (256, 0)}),
    ("Latent vector", "End", {"latent": (2048, 0)}),
    ("8 bits", "Enter", {"bytes_per_number": 1}),
    ("MLA", "Space", {"latent": ()}),
]


def test_keys_move_every_size_and_all_that_is_told_follows(show):
    sizes = {"tokens": 1000, "d_k": 50}  # between the stops of the sliders
    page = show(CacheCalculator(**sizes))
    unfold(page)
    assert_shows(page, **sizes)
    for name, key, changes in MOVES:
        roles = {"MLA": "checkbox", "8 bits": "button"}
        page.get_by_role(roles.get(name, "slider"), name=name, exact=name == "8 bits").press(key)
        sizes |= changes
        assert_shows(page, **sizes)


def test_a_tap_brings_a_models_numbers_and_their_source(show):
    page = show(CacheCalculator(layers=4), width=360)
    unfold(page)
    assert_shows(page, layers=4)  # with MQA it is exactly 1 MiB
    note = page.locator(".attn-note").first
    own = note.inner_text()
    for model in MODELS:
        page.get_by_role("button", name=model.name, exact=True).tap()
        assert_shows(page, model.name)
        page.get_by_role("slider", name="Tokens").press("Home")  # the model stays what it is
        assert model.source in (told := note.inner_text()) and numbers_in(told)[-1] == model.tokens
    page.get_by_role("slider", name="Layers").press("End")
    assert note.inner_text() == own
