"""CacheCalculator in a real browser, without a kernel: its numbers, its bars, its controls."""

import re

import pytest
from tools.widget_pages import asked, said, unfold

from attncourse.widgets import CacheCalculator
from attncourse.widgets.cache_calculator.widget import MODELS

KIB, MIB, GIB = 2**10, 2**20, 2**30
UNITS = {"bytes": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 2**40, "PiB": 2**50}


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


def bars(page):
    """Each bar's words, its size in bytes, and its length as a share."""
    rows = []
    for row in page.locator(".attn-ways li").all():
        words, _, told = row.locator("> span").all_text_contents()
        length = row.locator(".attn-bar").evaluate("bar => bar.style.width")
        rows.append((words, size(told), float(length.rstrip("%")) / 100))
    return rows


def formula(page):
    return page.locator(".attn-formula p").all_inner_texts()


def test_a_button_brings_a_models_numbers_and_their_source(show):
    page = show(CacheCalculator(layers=1))
    assert page.get_by_text("Sizes of your own.").count() == 1
    for model in MODELS:
        button = page.get_by_role("button", name=model.name, exact=True)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert f"Source: {model.source}." in page.locator(".attn-note").first.inner_text()
        widget = CacheCalculator(model.name)
        per_token, in_all = formula(page)
        assert f"= {widget.bytes_per_token:,} bytes = " in per_token
        assert size(in_all) == pytest.approx(widget.bytes_in_all, rel=0.001)
        told = in_all.partition(" = ")[2]
        assert said(page).startswith(f"{model.name}: {told} for 1 sequence of {model.tokens:,} tok")
        if widget.latent:
            assert per_token.startswith("60 layers × (512 + 64) numbers × 2 bytes = ")


def test_the_formula_has_the_readers_numbers(show):
    page = show(CacheCalculator("Llama 2 70B", sequences=3))
    assert formula(page) == [
        "80 layers × 2 (key, value) × 8 KV heads × 128 numbers × 2 bytes = 327,680 bytes = 320 KiB "
        "per token",
        "320 KiB × 4,096 tokens × 3 sequences = 3.75 GiB",
    ]


def test_bars_are_as_long_as_what_they_tell(show):
    widget = CacheCalculator("Llama 2 70B")
    page = show(widget)
    found = bars(page)
    assert [words for words, _, _ in found] == [
        "MHA 64 KV heads",
        "GQA 8 KV heads",
        "MQA 1 KV head",
        "MLA 512 + 64 numbers",
    ]
    assert [told for _, told, _ in found] == [10 * GIB, 1.25 * GIB, 160 * MIB, 360 * MIB]
    assert [length for _, _, length in found] == pytest.approx(
        [told / (10 * GIB) for _, told, _ in found], rel=1e-5
    )
    assert page.locator(".attn-ways [aria-current]").inner_text().startswith("GQA")


def test_how_many_sequences_fit(show):
    page = show(CacheCalculator("Llama 2 70B"))
    assert "24 GiB hold 19 such sequences." in said(page)
    memory = page.get_by_role("slider", name="Memory")
    memory.press("Home")
    assert "Not one such sequence fits into 1 GiB." in said(page)
    memory.press("ArrowRight")
    assert "2 GiB hold 1 such sequence." in said(page)
    page.get_by_role("button", name="8 bits").click()
    assert "2 GiB hold 3 such sequences." in said(page)


def value(page, name):
    slider = page.get_by_role("slider", name=name)
    return slider.get_attribute("aria-valuetext") if slider.count() else None


def test_kv_heads_divide_the_query_heads(show):
    page = show(CacheCalculator())
    kv_heads = page.get_by_role("slider", name="KV heads")
    seen = []
    for key in ["Home", *["ArrowRight"] * 6]:
        kv_heads.press(key)
        seen.append(int(value(page, "KV heads")))
    assert seen == [1, 2, 3, 4, 6, 12, 12]
    heads = page.get_by_role("slider", name="Query heads")
    heads.press("ArrowRight")  # none are shared, and none are now
    assert (value(page, "Query heads"), value(page, "KV heads")) == ("16", "16")
    kv_heads.press("ArrowLeft")
    heads.press("ArrowLeft")  # 8 don't divide 12
    assert (value(page, "Query heads"), value(page, "KV heads")) == ("12", "6")


def test_a_latent_vector_takes_the_place_of_kv_heads(show):
    page = show(CacheCalculator("Llama 2 7B"))
    assert value(page, "Latent vector") is None
    page.get_by_role("checkbox").press("Space")
    assert value(page, "KV heads") is None
    assert (value(page, "Latent vector"), value(page, "Position key")) == ("512", "64")
    assert page.locator(".attn-ways [aria-current]").inner_text().startswith("MLA")
    page.get_by_role("slider", name="Position key").press("Home")
    page.get_by_role("slider", name="Latent vector").press("ArrowRight")
    assert formula(page)[0].startswith("32 layers × (768 + 0) numbers × 2 bytes")
    page.get_by_role("checkbox").press("Space")
    assert formula(page)[0].startswith("32 layers × 2 (key, value) × 32 KV heads × 128")


def test_tokens_double_from_stop_to_stop(show):
    """A number from Python may stand between the stops."""
    page = show(CacheCalculator(tokens=1000, d_k=50))
    assert (value(page, "Tokens"), value(page, "Head width")) == ("1,000", "50")
    assert "× 1,000 tokens" in formula(page)[1]
    tokens = page.get_by_role("slider", name="Tokens")
    seen = []
    for key in ["ArrowRight"] * 4 + ["End", "Home"]:
        tokens.press(key)
        seen.append(value(page, "Tokens"))
    assert seen == ["1,536", "2,048", "3,072", "4,096", "1,048,576", "1"]


def test_a_table_has_the_bytes_of_all_ways(show):
    widget = CacheCalculator("Llama 2 70B", sequences=2)
    page = show(widget)
    unfold(page)
    rows = [row.locator("th, td").all_text_contents() for row in page.locator("tbody tr").all()]
    assert rows == [
        ["MHA, 64 KV heads", "16,384", "2,621,440", "10 GiB", "20 GiB", "1", "2"],
        ["GQA, 8 KV heads", "2,048", "327,680", "1.25 GiB", "2.5 GiB", "0.125", "19"],
        ["MQA, 1 KV head", "256", "40,960", "160 MiB", "320 MiB", "0.0156", "153"],
        ["MLA, 512 + 64 numbers", "576", "92,160", "360 MiB", "720 MiB", "0.0352", "68"],
    ]
