"""CacheCalculator in a real browser, without a kernel: its numbers, its bars, its controls."""

import re

import pytest
from tools.widget_pages import unfold

from attncourse.widgets import CacheCalculator
from attncourse.widgets.cache_calculator.widget import MODELS

KIB, MIB, GIB = 2**10, 2**20, 2**30
UNITS = {"bytes": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 2**40, "PiB": 2**50}
NAMES = [model.name for model in MODELS]


def example(text):
    """A calculator for the tests of what every widget does: it shows no text that is given."""
    return CacheCalculator()


def largest(text):
    widest = {"layers": 128, "num_heads": 128, "d_k": 512, "latent": (2048, 512)}
    return CacheCalculator(**widest, tokens=2**20, sequences=128, bytes_per_number=4, memory=1024)


PLACES = set()
KEY = ("[type=range]", "ArrowRight")


def ways(page, widget):
    """What the browser computes of a widget's traits, by the names of the ways."""
    names = ("models", "layers", "heads", "d_k", "latent", "tokens", "sequences")
    found = page.evaluate(
        """(state) => {
            const {readState} = attnModules["cache_calculator/widget.js"];
            const {waysOf} = attnModules["cache_calculator/sizes.js"];
            return waysOf(readState(new Map(Object.entries(state))));
        }""",
        {name: getattr(widget, name) for name in (*names, "bytes_per_number", "memory")},
    )
    return {way["name"]: way for way in found}


OWN = {
    "one head": CacheCalculator(num_heads=1),
    "a prime number of heads": CacheCalculator(num_heads=7, num_kv_heads=7),
    "groups of two": CacheCalculator(num_heads=24, num_kv_heads=12),
    "latent without a key": CacheCalculator(latent=(100, 0), d_k=1),
    "as much as there can be": largest(""),
    **{name: CacheCalculator(name) for name in NAMES},
}


@pytest.mark.parametrize("case", OWN)
def test_the_browser_computes_what_python_computes(show, case):
    widget = OWN[case]
    found = ways(show(widget), widget)
    (own,) = [name for name, way in found.items() if way["isOwn"]]
    assert (own == "MLA") == bool(widget.latent)
    assert found[own]["perToken"] == widget.bytes_per_token
    assert found[own]["inAll"] == widget.bytes_in_all
    per_sequence = widget.bytes_per_token * widget.tokens
    assert found[own]["fitting"] == widget.memory * GIB // per_sequence
    for name, way in found.items():
        other = {"latent": way["latent"]} if name == "MLA" else {"num_kv_heads": way["kvHeads"]}
        sizes = {name: getattr(widget, name) for name in ("layers", "d_k", "tokens", "sequences")}
        other |= {"num_heads": widget.heads[0], "bytes_per_number": widget.bytes_per_number}
        assert way["inAll"] == CacheCalculator(**sizes, **other).bytes_in_all, name


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


def said(page):
    return page.locator("output.attn-live").inner_text()


def formula(page):
    return page.locator(".attn-formula p").all_inner_texts()


PUBLISHED = {
    "GPT-2 small": ("36,864 bytes = 36 KiB", "36 MiB"),
    "GPT-3 175B": ("4,718,592 bytes = 4.5 MiB", "9 GiB"),
    "Llama 2 7B": ("524,288 bytes = 512 KiB", "2 GiB"),
    "Llama 2 70B": ("327,680 bytes = 320 KiB", "1.25 GiB"),
    "Llama 3.1 8B": ("131,072 bytes = 128 KiB", "16 GiB"),
    "Falcon 7B": ("8,192 bytes = 8 KiB", "16 MiB"),
    "DeepSeek-V2": ("69,120 bytes = 67.5 KiB", "8.44 GiB"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_button_brings_a_models_numbers_and_their_source(show, name):
    page = show(CacheCalculator(layers=1))
    assert page.get_by_text("Sizes of your own.").count() == 1
    button = page.get_by_role("button", name=name, exact=True)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    model = next(model for model in MODELS if model.name == name)
    assert f"Source: {model.source}." in page.locator(".attn-note").first.inner_text()
    per_token, in_all = PUBLISHED[name]
    assert formula(page)[0].endswith(f" = {per_token} per token")
    assert formula(page)[1].endswith(f" = {in_all}")
    assert said(page).startswith(f"{name}: {in_all} for 1 sequence of {model.tokens:,} tokens.")


def test_the_formula_has_the_readers_numbers(show):
    page = show(CacheCalculator("Llama 2 70B", sequences=3))
    assert formula(page) == [
        "80 layers × 2 (key, value) × 8 KV heads × 128 numbers × 2 bytes = 327,680 bytes = 320 KiB "
        "per token",
        "320 KiB × 4,096 tokens × 3 sequences = 3.75 GiB",
    ]
    page.get_by_role("button", name="DeepSeek-V2").click()
    assert formula(page)[0].startswith("60 layers × (512 + 64) numbers × 2 bytes = 69,120 bytes")


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
    page = show(CacheCalculator())
    tokens = page.get_by_role("slider", name="Tokens")
    seen = []
    for _ in range(4):
        tokens.press("ArrowRight")
        seen.append(value(page, "Tokens"))
    assert seen == ["1,536", "2,048", "3,072", "4,096"]
    tokens.press("End")
    assert value(page, "Tokens") == "1,048,576"
    tokens.press("Home")
    assert value(page, "Tokens") == "1"


def test_a_number_between_the_stops_is_told_as_it_is(show):
    page = show(CacheCalculator(tokens=1000, d_k=50))
    assert (value(page, "Tokens"), value(page, "Head width")) == ("1,000", "50")
    assert "× 1,000 tokens" in formula(page)[1]
    page.get_by_role("slider", name="Tokens").press("ArrowRight")
    assert value(page, "Tokens") == "1,536"


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


DAMAGES = {
    "layers should be a whole number from 1 to 128, but is 0": lambda s, _: s.update(layers=0),
    "KV heads that divide them, but is [12,5]": lambda s, _: s.update(heads=[12, 5]),
    "d_k should be a whole number from 1 to 512, but is 1.5": lambda s, _: s.update(d_k=1.5),
    "latent should be [] or [d_c, d_R], but is [64]": lambda s, _: s.update(latent=[64]),
    "tokens should be a whole number from 1 to 1048576": lambda s, _: s.update(tokens="many"),
    "sequences should be a whole number": lambda s, _: s.update(sequences=129),
    "bytes_per_number should be one of 4, 2, 1, but is 8": lambda s, _: s.update(
        bytes_per_number=8
    ),
    "memory should be a whole number from 1 to 1024": lambda s, _: s.update(memory=None),
    "models should be a list of models, at least 1": lambda s, _: s.update(models=[]),
}
