"""Tokenizer in a real browser, without a kernel: its cuts and chances, its controls."""

import pytest
import torch
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
    "", " ", "   ", "the king", " the  king that ", "aaaa", "été", "😀😀a😀", "👩‍👩‍👧", "שלום עולם",
    "日本語", "e\u0301", "\ufeffthe", "a\tb", "\u00a0the\u2028king", "THE king", "\x00\x85",
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
    "most should be": {"most": -1},
    "num_merges should be": {"num_merges": 151},
    "text should be": {"text": "a" * 201},
    "vocabulary should be": {"vocabulary": "ab"},
    "counts should be 1 numbers": {"vocabulary": ["a"]},
}
CUT = """(cases) => {
    const {encode} = attnModules["tokenizer/widget.js"];
    return cases.map(([text, number, merges]) => encode(text, merges, number));
}"""


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


def test_the_browser_reads_the_merges_and_cuts_as_python_does(show):
    page = show(example("a"))
    tokens = """(model) => {
      const {readState, tokensOf} = attnModules["tokenizer/widget.js"];
      return tokensOf(readState(model).merges);
    }"""
    read = asked(page, example("a"), tokens)
    assert [bytes(token) for token in read] == list(TOKENIZER.vocabulary)
    cases = [(text, number) for text in TEXTS for number in (0, 1, 20, 150)]
    merges = [list(pair) for pair in TOKENIZER.merges]
    found = page.evaluate(CUT, [(*case, merges) for case in cases])
    assert found == [TOKENIZER.first(number).encode(text) for text, number in cases]
    # What was learned first is merged first.
    tokenizer = BytePairTokenizer.train("bc\nbc\nbc\nab\nab", 2)
    found = page.evaluate(CUT, [("abcab", 2, [list(pair) for pair in tokenizer.merges])])
    assert found == [[ord("a"), 256, 257]] == [tokenizer.encode("abcab")]
    # A mark of byte order is a character.
    told = "(bytes) => attnModules['tokenizer/widget.js'].tokenText(bytes)"
    assert page.evaluate(told, [*"\ufeff".encode()]) == "\ufeff"


def test_a_reader_types_and_takes_merges_back_by_keys(show):
    page = show(Tokenizer(TOKENIZER, "", num_merges=20))
    assert_shows(page, TOKENIZER.first(20), "")
    page.get_by_role("textbox", name="Text").press_sequentially("é the king")
    unfold(page)
    slider = page.get_by_role("slider", name="Merges")
    for key, number in (
        ("Shift", 20), ("ArrowLeft", 19), ("Home", 0), ("ArrowRight", 1), ("End", 150),
    ):  # fmt: skip
        slider.press(key)
        assert_shows(page, TOKENIZER.first(number), "é the king")
    assert "␣king" in pieces(page)
    assert page.locator(".attn-next").count() == 0  # there are no counts


def test_parts_of_a_letter_and_what_cannot_be_seen_are_shown_as_bytes(show):
    page = show(Tokenizer(BytePairTokenizer(), "é😀"))
    assert pieces(page) == ["C3", "A9", "F0", "9F", "98", "80"]
    assert numbers_in(said(page)) == [2, 6, 6, 256]
    assert page.get_by_role("slider").is_disabled()  # there is nothing to choose
    page = show(Tokenizer(BytePairTokenizer([(0xC2, 0xA0)]), "a\t\u00a0", **BIGRAM))
    assert pieces(page) == ["a", "09", "C2 A0"]
    for text, letter in (("a\t", "“09”"), ("belé", "“é”")):  # it never met such a letter
        page.get_by_role("textbox", name="Text").fill(text)
        heading = page.locator(".attn-heading").inner_text()
        assert letter in heading and "knows nothing" in heading
        assert page.locator(".attn-bar").count() == 0


def test_tokens_run_in_the_direction_of_the_text(show):
    page = show(Tokenizer(TOKENIZER, ""))
    for text, direction in (("שלום", "rtl"), ("the שלום", "ltr"), ("", "ltr")):
        page.get_by_role("textbox").fill(text)
        assert page.locator(".attn-pieces").get_attribute("dir") == direction
        boxes = [piece.bounding_box()["x"] for piece in page.locator(".attn-pieces li").all()]
        assert boxes == sorted(boxes, reverse=direction == "rtl")


def test_chances_are_those_of_the_counts(show):
    page = show(Tokenizer(TOKENIZER, "", **BIGRAM))
    for text in ("", "b", "bel", "BEL", "bel ", "bel."):  # the boundary may be typed
        page.get_by_role("textbox").fill(text)
        last = text.lower()[-1:].strip() or "."
        assert ("“" in page.locator(".attn-heading").inner_text()) == (text[-1:].strip() != "")
        row = COUNTS[names.vocabulary.index(last)].double()
        shares, places = (row / row.sum()).sort(descending=True)
        letters = ["end" if i == names.boundary else names.vocabulary[i] for i in places]
        met = int((shares > 0).sum())
        rows = page.locator("li:has(.attn-bar)").all()
        shown = dict(one.locator("> span").all_text_contents()[::2] for one in rows)
        expected = dict(zip(letters, shares.tolist(), strict=True))
        assert len(shown) == min(met, 8)
        assert [expected[letter] for letter in shown] == shares[: len(shown)].tolist()
        for letter, share in shown.items():
            assert abs(float(share) - expected[letter]) <= 0.005001
        lengths = page.locator(".attn-bar").evaluate_all("bars => bars.map((b) => b.style.width)")
        widths = torch.tensor(numbers_in(" ".join(lengths)))
        torch.testing.assert_close(widths, 100 * shares[: len(shown)].float(), atol=1e-3, rtol=0)
        told = numbers_in(page.locator("ul + .attn-note").inner_text())
        left = [met - 8, shares[8:].sum().item()] if met > 8 else []
        assert told == pytest.approx(left, abs=0.005001)


def test_the_table_tells_all_bytes_of_a_long_token(show):
    page = show(Tokenizer(TOKENIZER, "the king", origin="a"), width=360)
    unfold(page)
    longest = max(TOKENIZER.vocabulary, key=len)
    page.get_by_role("textbox").fill("a" + longest.decode())
    cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    assert max(len(cell) for cell in page.locator("td").all_inner_texts()) > 20
    assert page.locator("td").evaluate_all(cut) == 0
