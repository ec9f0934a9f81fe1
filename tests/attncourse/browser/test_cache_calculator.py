"""CacheCalculator in a real browser, without a kernel: its numbers, its bars, its controls."""

import re

import pytest
from tools.widget_pages import asked, numbers_in, said, unfold

from attncourse.widgets import CacheCalculator
from attncourse.widgets.cache_calculator.widget import MODELS

GIB = 2**30
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": GIB, "TiB": 2**40, "PiB": 2**50}


def example(text):
    """A calculator for the tests of what every widget does: it shows no text that is given."""
    return CacheCalculator()


def largest(text):
    widest = {"layers": 128, "num_heads": 128, "d_k": 512, "latent": (2048, 512)}
    return CacheCalculator(**widest, tokens=2**20, sequences=128, bytes_per_number=4, memory=1024)


PLACES = set()
KEY = ("[type=range]", "ArrowRight")
DAMAGES = {
    "layers should be": {"layers": 0},
    "KV heads that divide them": {"heads": [12, 5]},
    "d_k should be": {"d_k": 1.5},
    "latent should be": {"latent": [64]},
    "tokens should be": {"tokens": "many"},
    "sequences should be": {"sequences": 129},
    "bytes_per_number should be": {"bytes_per_number": 8},
    "memory should be": {"memory": None},
    "models should be": {"models": []},
}
WAYS = """(model) => {
  const {readState} = attnModules["cache_calculator/widget.js"];
  return attnModules["cache_calculator/sizes.js"].waysOf(readState(model));
}"""


def ways(page, widget):
    """What the browser computes of a widget's traits, by the names of the ways."""
    return {way["name"]: way for way in asked(page, widget, WAYS)}


OWN = {
    "one head": CacheCalculator(num_heads=1),
    "a prime number of heads": CacheCalculator(num_heads=7, num_kv_heads=7),
    "groups of two": CacheCalculator(num_heads=24, num_kv_heads=12),
    "latent without a key": CacheCalculator(latent=(100, 0), d_k=1),
    "as much as there can be": largest(""),
    **{model.name: CacheCalculator(model.name) for model in MODELS},
}


def test_the_browser_computes_what_python_computes(show):
    page = show(CacheCalculator())
    for case, widget in OWN.items():
        found = ways(page, widget)
        (own,) = [name for name, way in found.items() if way["isOwn"]]
        assert (own == "MLA") == bool(widget.latent)
        assert found[own]["perToken"] == widget.bytes_per_token, case
        per_sequence = widget.bytes_per_token * widget.tokens
        assert found[own]["fitting"] == widget.memory * GIB // per_sequence
        for name, way in found.items():
            other = {"latent": way["latent"]} if name == "MLA" else {"num_kv_heads": way["kvHeads"]}
            sizes = {key: getattr(widget, key) for key in ("layers", "d_k", "tokens", "sequences")}
            other |= {"num_heads": widget.heads[0], "bytes_per_number": widget.bytes_per_number}
            assert way["inAll"] == CacheCalculator(**sizes, **other).bytes_in_all, (case, name)


def test_heads_are_shared_in_the_usual_ways(show):
    page = show(CacheCalculator())

    def kv_heads(**sizes):
        found = ways(page, CacheCalculator(**sizes))
        return {name: way.get("kvHeads", way.get("latent")) for name, way in found.items()}

    usual = {"MHA": 12, "GQA": 6, "MQA": 1, "MLA": [256, 32]}
    assert kv_heads() == usual
    assert kv_heads(num_heads=12, num_kv_heads=3) == {**usual, "GQA": 3}
    assert kv_heads(num_heads=121)["GQA"] == 11  # nothing up to 8 divides it
    assert kv_heads(num_heads=7) == {"MHA": 7, "MQA": 1, "MLA": [256, 32]}
    assert kv_heads(num_heads=1) == {"MHA": 1, "MLA": [256, 32]}
    assert kv_heads(latent=(100, 3))["MLA"] == [100, 3]


def size(text):
    """A size that is told: "1.25 GiB", in bytes."""
    number, unit = re.search(r"([\d.]+) (bytes|[KMGTP]iB)$", text).groups()
    return float(number) * UNITS[unit]


def rounded(number):
    return pytest.approx(number, rel=0.005)  # to three digits


def value(page, name):
    slider = page.get_by_role("slider", name=name)
    return slider.get_attribute("aria-valuetext") if slider.count() else None


def assert_shows(page, model=None, **sizes):
    """Fail unless bars, table, formula, words and controls are of a calculator of Python's."""
    widget = CacheCalculator(model or "GPT-2 small", **sizes)
    all_ways = ways(page, widget).values()
    most, mha = max(way["inAll"] for way in all_ways), next(iter(all_ways))
    [own] = [way for way in all_ways if way["isOwn"]]
    rows = page.locator("tbody tr").all()
    for way, bar, row in zip(all_ways, page.locator(".attn-ways li").all(), rows, strict=True):
        heads = way.get("latent") or [way["kvHeads"]]
        words, _, told = bar.locator("> span").all_text_contents()
        assert (words.split()[0], numbers_in(words)) == (way["name"], heads)
        assert size(told) == rounded(way["inAll"])
        length = bar.locator(".attn-bar").evaluate("bar => bar.style.width")
        assert numbers_in(length) == rounded([100 * way["inAll"] / most])
        assert (bar.get_attribute("aria-current") == "true") == (way is own)
        words, layer, token, sequence, in_all, share, fits = row.locator("th, td").all_inner_texts()
        assert (words.split(",")[0], numbers_in(words)) == (way["name"], heads)
        exact = [way["perLayer"], way["perToken"], way["fitting"]]
        assert numbers_in(f"{layer} {token} {fits}") == exact
        assert [size(sequence), size(in_all)] == rounded([way["perSequence"], way["inAll"]])
        assert float(share) == rounded(way["inAll"] / mha["inAll"])

    first, second = page.locator(".attn-formula p").all_inner_texts()
    kind = widget.latent or [2, widget.heads[1], widget.d_k]
    factors = [widget.layers, *kind, widget.bytes_per_number, widget.bytes_per_token]
    assert numbers_in(first)[:-1] == factors
    assert numbers_in(second)[1:3] == [widget.tokens, widget.sequences]
    assert second.split(" × ")[0] in first.split(" = ")[2]
    in_all = second.split(" = ")[1]
    assert size(in_all) == rounded(widget.bytes_in_all)
    assert f" {in_all} " in said(page)
    fits = [widget.memory, own["fitting"]] if own["fitting"] else [widget.memory]
    assert numbers_in(said(page))[-len(fits) :] == fits

    names = ["Layers", "Head width", "Query heads", "Tokens", "Sequences", "Memory"]
    told = [widget.layers, widget.d_k, widget.heads[0], widget.tokens, widget.sequences]
    assert [value(page, name) for name in names[:-1]] == [f"{number:,}" for number in told]
    assert numbers_in(value(page, "Memory")) == [widget.memory]
    assert value(page, "KV heads") == (None if widget.latent else str(widget.heads[1]))
    latent = [value(page, name) for name in ("Latent vector", "Position key")]
    assert latent == ([str(number) for number in widget.latent] or [None, None])
    assert page.get_by_role("checkbox").is_checked() == bool(widget.latent)
    pressed = page.locator("button[aria-pressed=true]").all_inner_texts()
    assert pressed == [*[model] * bool(model), f"{8 * widget.bytes_per_number} bits"]


MOVES = [  # a control, a key, and what it changes
    ("Layers", "ArrowRight", {"layers": 13}),
    ("Head width", "ArrowRight", {"d_k": 64}),
    ("Query heads", "ArrowRight", {"num_heads": 16}),  # none are shared, and none are now
    ("KV heads", "ArrowLeft", {"num_kv_heads": 8}),
    ("Query heads", "ArrowLeft", {"num_heads": 12, "num_kv_heads": 6}),  # 8 don't divide 12
    ("KV heads", "Home", {"num_kv_heads": 1}),
    ("KV heads", "ArrowRight", {"num_kv_heads": 2}),
    ("Sequences", "ArrowRight", {"sequences": 2}),
    ("Tokens", "ArrowRight", {"tokens": 1536}),
    ("Memory", "Home", {"memory": 1}),
    ("Tokens", "End", {"tokens": 2**20}),  # not one of them fits
    ("MLA", "Space", {"latent": (256, 32)}),
    ("Position key", "Home", {"latent": (256, 0)}),
    ("Latent vector", "ArrowRight", {"latent": (512, 0)}),
    ("8 bits", "Enter", {"bytes_per_number": 1}),
    ("MLA", "Space", {"latent": ()}),
]


def test_keys_move_every_size_and_all_that_is_told_follows(show):
    page = show(CacheCalculator(tokens=1000, d_k=50))  # between the stops of the sliders
    unfold(page)
    sizes = {"tokens": 1000, "d_k": 50}
    assert_shows(page, **sizes)
    for name, key, changes in MOVES:
        roles = {"MLA": "checkbox", "8 bits": "button"}
        page.get_by_role(roles.get(name, "slider"), name=name, exact=name == "8 bits").press(key)
        sizes |= changes
        assert_shows(page, **sizes)


def test_a_tap_brings_a_models_numbers_and_their_source(show):
    page = show(CacheCalculator(layers=1), width=360)
    unfold(page)
    assert_shows(page, layers=1)
    note = page.locator(".attn-note").first
    own = note.inner_text()
    for model in MODELS:
        page.get_by_role("button", name=model.name, exact=True).tap()
        assert_shows(page, model.name)
        assert model.source in note.inner_text()
        assert numbers_in(note.inner_text())[-1] == model.tokens
    page.get_by_role("slider", name="Layers").press("End")
    assert note.inner_text() == own
