"""Tokenizer in a real browser, without a kernel: its cuts and chances, its controls."""

import pytest
from tools.widget_pages import asked, numbers_in, said, unfold

from attncourse.tasks import concord, names
from attncourse.tokens import BytePairTokenizer
from attncourse.training import pair_counts
from attncourse.widgets import Tokenizer

SENTENCES = " ".join(" ".join(s.words) for s in concord.sentences(200, seed=0))
TOKENIZER = BytePairTokenizer.train(SENTENCES + " été 😀😀 שלום שלום", 150)
COUNTS = pair_counts([(*s.ids, names.boundary) for s in names.sentences(100, seed=0)], 27)
BIGRAM = {"counts": COUNTS, "vocabulary": names.vocabulary}
TEXTS = [
    "", "   ", " the  king that ", "aaaa", "été", "😀😀a😀", "שלום עולם", "e\u0301", "\ufeffthe",
    "a\tb", "\u00a0the\u2028king", "\x00\x85",
]  # fmt: skip


def example(text):
    return Tokenizer(TOKENIZER, "the king", num_merges=20, origin=text, **BIGRAM)


def largest(text):
    return Tokenizer(TOKENIZER, text[:200], num_merges=0, origin=text, **BIGRAM)


PLACES = {"div.attn-widget > p.attn-note …"}
KEY = (".attn-track input", "ArrowLeft")
DAMAGES = {
    # The first merge joins a token that is made after it.
    "merges should join tokens that are there": {"merges": bytes([5, 1]) + example("a").merges[2:]},
    "merges should be 300 numbers": lambda _, buffers: buffers.clear(),
    "num_merges should be": {"num_merges": 151},
    "text should be": {"text": "a" * 201},
    "vocabulary should be": {"vocabulary": "ab"},
    "counts should be 1 numbers": {"vocabulary": ["a"]},
}


def pieces(page):
    return page.locator(".attn-pieces bdi").all_text_contents()


def assert_shows(page, tokenizer, text):
    """Fail unless a text is cut, counted and told as a tokenizer of Python's has it."""
    expected = tokenizer.encode(text)
    ids = page.locator(".attn-pieces .attn-id").all_text_contents()
    assert ids == [str(token) for token in expected]
    sizes = [len(text), len(text.encode()), len(expected), len(tokenizer.vocabulary)]
    assert numbers_in(said(page)) == sizes
    rows = [row.locator("th, td").all_text_contents() for row in page.locator("tbody tr").all()]
    assert [row[0] for row in rows] == pieces(page)
    assert [row[1] for row in rows] == ids
    assert [bytes(map(int, row[2].split())) for row in rows] == [
        tokenizer.vocabulary[token] for token in expected
    ]
    slider = page.get_by_role("slider", name="Merges")
    assert slider.get_attribute("aria-valuetext") == str(len(tokenizer.merges))
    if tokenizer.merges:  # the newest token is marked, and its parts are named
        newest = str(len(tokenizer.vocabulary) - 1)
        assert page.locator(".attn-new .attn-id").all_text_contents() == [
            token for token in ids if token == newest
        ]
        parts = [tokenizer.vocabulary[part] for part in tokenizer.merges[-1]]
        told = " and ".join(part.decode().replace(" ", "␣") for part in parts)
        assert page.get_by_text(told).count() == 1


CUT = """(model, cases) => {
  const {encode, readState, tokensOf} = attnModules["tokenizer/widget.js"];
  const {merges} = readState(model);
  return [tokensOf(merges), cases.map(([text, number]) => encode(text, merges, number))];
}"""


def test_the_browser_reads_the_merges_and_cuts_as_python_does(show):
    page = show(example("a"))
    cases = [(text, number) for text in TEXTS for number in (0, 20, 150)]
    tokens, found = asked(page, example("a"), CUT, cases)
    assert [bytes(token) for token in tokens] == list(TOKENIZER.vocabulary)
    assert found == [TOKENIZER.first(number).encode(text) for text, number in cases]


def test_a_reader_types_and_takes_merges_back_by_keys(show):
    page = show(Tokenizer(TOKENIZER, "", num_merges=20))
    page.get_by_role("textbox", name="Text").press_sequentially("é the king")
    unfold(page)
    slider = page.get_by_role("slider", name="Merges")
    for key, number in (("Shift", 20), ("ArrowLeft", 19), ("Home", 0), ("End", 150)):
        slider.press(key)
        assert_shows(page, TOKENIZER.first(number), "é the king")
    assert "␣king" in pieces(page)
    for text, direction in (("שלום", "rtl"), ("the שלום", "ltr")):  # as the text runs
        page.get_by_role("textbox").fill(text)
        assert page.locator(".attn-pieces").get_attribute("dir") == direction
    assert page.locator(".attn-next").count() == 0  # there are no counts


def test_parts_of_a_letter_and_what_cannot_be_seen_are_shown_as_bytes(show):
    page = show(Tokenizer(BytePairTokenizer(), "é😀"))
    assert pieces(page) == ["C3", "A9", "F0", "9F", "98", "80"]
    assert page.get_by_role("slider").is_disabled()  # there is nothing to choose
    page = show(Tokenizer(BytePairTokenizer([(0xC2, 0xA0)]), "a\t\u00a0", **BIGRAM))
    assert pieces(page) == ["a", "09", "C2 A0"]
    for text, letter in (("a\t", "“09”"), ("belé", "“é”")):  # it never met such a letter
        page.get_by_role("textbox", name="Text").fill(text)
        heading = page.locator(".attn-heading").inner_text()
        assert letter in heading and "knows nothing" in heading
        assert page.locator(".attn-bar").count() == 0


def test_chances_are_those_of_the_counts(show):
    page = show(Tokenizer(TOKENIZER, "", **BIGRAM))
    for text in ("", "b", "BEL", "bel ", "bel."):  # the boundary may be typed
        page.get_by_role("textbox").fill(text)
        last = text.lower()[-1:].strip() or "."
        assert ("“" in page.locator(".attn-heading").inner_text()) == (text[-1:].strip() != "")
        row = COUNTS[names.vocabulary.index(last)].double()
        shares, places = (row / row.sum()).sort(descending=True, stable=True)
        letters = ["end" if i == names.boundary else names.vocabulary[i] for i in places]
        met = int((shares > 0).sum())
        most = min(met, 8)
        found = page.locator("li:has(.attn-bar) > span:not(:has(*))").all_text_contents()
        assert found[::2] == letters[:most]
        assert numbers_in(" ".join(found[1::2])) == pytest.approx(shares[:most], abs=0.0051)
        lengths = page.locator(".attn-bar").evaluate_all("bars => bars.map((b) => b.style.width)")
        assert numbers_in(" ".join(lengths)) == pytest.approx(100 * shares[:most], abs=1e-3)
        told = numbers_in(page.locator("ul + .attn-note").inner_text())
        left = [met - 8, shares[8:].sum().item()] if met > 8 else []
        assert told == pytest.approx(left, abs=0.0051)
