"""Tokenizer in a real browser, without a kernel: its cuts and chances, its controls."""

import base64

import pytest
import torch
from tools.widget_pages import unfold

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
CUT = """(cases) => {
    const {encode} = attnModules["tokenizer/widget.js"];
    return cases.map(([text, number, merges]) => encode(text, merges, number));
}"""


def pieces(page):
    return page.locator(".attn-pieces bdi").all_text_contents()


def ids(page):
    return [int(text) for text in page.locator(".attn-pieces .attn-id").all_text_contents()]


def test_the_browser_cuts_as_python_does(show):
    cases = [(text, number) for text in TEXTS for number in (0, 1, 20, 150)]
    merges = [list(pair) for pair in TOKENIZER.merges]
    found = show(example("a")).evaluate(CUT, [(*case, merges) for case in cases])
    assert found == [TOKENIZER.first(number).encode(text) for text, number in cases]


def test_the_browser_merges_first_what_was_learned_first(show):
    tokenizer = BytePairTokenizer.train("bc\nbc\nbc\nab\nab", 2)
    merges = [list(pair) for pair in tokenizer.merges]
    found = show(example("a")).evaluate(CUT, [("abcab", 2, merges)])
    assert found == [[ord("a"), 256, 257]] == [tokenizer.encode("abcab")]


def test_a_mark_of_byte_order_is_a_character(show):
    told = "(bytes) => attnModules['tokenizer/widget.js'].tokenText(bytes)"
    assert show(example("a")).evaluate(told, [*"\ufeff".encode()]) == "\ufeff"


def test_it_reads_the_merges_that_python_wrote(show):
    widget = example("a")
    state = {"merges": base64.b64encode(widget.merges).decode()}
    read = show(widget).evaluate(
        """({state, text}) => {
            const bytes = Uint8Array.from(atob(state.merges), (c) => c.charCodeAt(0));
            const values = {text, num_merges: 0, most: 150, vocabulary: [], counts: new DataView(
                new ArrayBuffer(0)), merges: new DataView(bytes.buffer)};
            const {readState, tokensOf} = attnModules["tokenizer/widget.js"];
            const {merges} = readState(new Map(Object.entries(values)));
            return tokensOf(merges);
        }""",
        {"state": state, "text": ""},
    )
    assert [bytes(token) for token in read] == list(TOKENIZER.vocabulary)


def test_a_reader_types_and_sees_tokens_with_ids(show):
    page = show(Tokenizer(TOKENIZER, "", num_merges=150))
    assert pieces(page) == []
    assert (
        "0 characters in 0 bytes: 0 tokens, from a vocabulary of 406"
        in page.locator("output").inner_text()
    )
    page.get_by_role("textbox", name="Text").press_sequentially("é the king")
    text = "é the king"
    assert ids(page) == TOKENIZER.encode(text)
    assert "␣king" in pieces(page)
    assert "10 characters in 11 bytes" in page.locator("output").inner_text()
    assert page.locator(".attn-next").count() == 0  # there are no counts


def test_the_slider_takes_merges_back(show):
    page = show(Tokenizer(TOKENIZER, "the king"))
    slider = page.get_by_role("slider", name="Merges")
    for key, number in [("ArrowLeft", 149), ("Home", 0), ("ArrowRight", 1), ("End", 150)]:
        slider.press(key)
        assert ids(page) == TOKENIZER.first(number).encode("the king")
        assert slider.get_attribute("aria-valuetext") == str(number)
    slider.press("Home")
    assert pieces(page) == list("the␣king")
    assert page.get_by_text("No merge: each byte is a token.").count() == 1
    slider.press("ArrowRight")
    assert page.get_by_text("The last merge joins t and h.").count() == 1


def test_a_table_names_each_token_with_its_bytes(show):
    page = show(Tokenizer(TOKENIZER, "the é"))
    unfold(page)
    rows = [row.locator("th, td").all_text_contents() for row in page.locator("tbody tr").all()]
    expected = TOKENIZER.encode("the é")
    assert [row[0] for row in rows] == pieces(page)
    assert [int(row[1]) for row in rows] == expected
    assert [bytes(map(int, row[2].split())) for row in rows] == [
        TOKENIZER.vocabulary[token] for token in expected
    ]


def test_parts_of_a_letter_are_shown_as_bytes(show):
    page = show(Tokenizer(BytePairTokenizer(), "é😀"))
    assert pieces(page) == ["C3", "A9", "F0", "9F", "98", "80"]
    assert (
        "2 characters in 6 bytes: 6 tokens, from a vocabulary of 256"
        in page.locator("output").inner_text()
    )
    slider = page.get_by_role("slider")
    assert slider.is_disabled()  # there is nothing to choose


def test_what_cannot_be_seen_is_shown_as_bytes(show):
    page = show(Tokenizer(BytePairTokenizer([(0xC2, 0xA0)]), "a\t\u00a0", **BIGRAM))
    assert pieces(page) == ["a", "09", "C2 A0"]
    page.get_by_role("textbox", name="Text").fill("a\t")
    assert "After “09”, the bigram knows nothing" in page.locator(".attn-heading").inner_text()


@pytest.mark.parametrize(("text", "direction"), [("שלום", "rtl"), ("the שלום", "ltr"), ("", "ltr")])
def test_tokens_run_in_the_direction_of_the_text(show, text, direction):
    page = show(Tokenizer(TOKENIZER, text))
    assert page.locator(".attn-pieces").get_attribute("dir") == direction
    boxes = [piece.bounding_box()["x"] for piece in page.locator(".attn-pieces li").all()]
    assert boxes == sorted(boxes, reverse=direction == "rtl")


@pytest.mark.parametrize("text", ["", "b", "bel", "BEL", "bel "])
def test_chances_are_those_of_the_counts(show, text):
    page = show(Tokenizer(TOKENIZER, text, **BIGRAM))
    last = text.lower()[-1:].strip() or "."
    row = COUNTS[names.vocabulary.index(last)].double()
    shares = row / row.sum()
    shown = [
        item.locator("> span").all_text_contents()
        for item in page.locator("li:has(.attn-bar)").all()
    ]
    letters = {"end": "."}
    values = [shares[names.vocabulary.index(letters.get(name, name))] for name, *_ in shown]
    assert values == sorted(shares.tolist(), reverse=True)[: len(values)]
    assert 1 <= len(values) <= 8
    for (_, _, told), share in zip(shown, values, strict=True):
        assert abs(float(told) - share) <= 0.005001
    widths = [
        float(bar.evaluate("bar => bar.style.width").rstrip("%"))
        for bar in page.locator(".attn-bar").all()
    ]
    torch.testing.assert_close(torch.tensor(widths), 100 * torch.tensor(values).float())
    place = f"After “{text[-1]}”" if last != "." else "At the beginning"
    assert page.get_by_text(place).count() == 1


def test_of_a_letter_that_it_never_met_the_bigram_knows_nothing(show):
    page = show(Tokenizer(TOKENIZER, "belé", **BIGRAM))
    assert "knows nothing" in page.locator(".attn-heading").inner_text()
    assert page.locator(".attn-bar").count() == 0


def test_a_boundary_that_is_typed_is_the_boundary(show):
    page = show(Tokenizer(TOKENIZER, "bel.", **BIGRAM))
    assert page.locator(".attn-bar").count() == 8


def test_the_table_tells_all_bytes_of_a_long_token(show):
    page = show(Tokenizer(TOKENIZER, "the king", origin="a"), width=360)
    unfold(page)
    longest = max(TOKENIZER.vocabulary, key=len)
    page.get_by_role("textbox").fill("a" + longest.decode())
    cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    assert max(len(cell) for cell in page.locator("td").all_inner_texts()) > 20
    assert page.locator("td").evaluate_all(cut) == 0


def use_later_tokens(_, buffers):
    """Let the first merge join a token that is made after it."""
    (merges,) = [buffer for buffer in buffers if buffer["path"] == ["merges"]]
    wrong = bytes([5, 1]) + base64.b64decode(merges["data"])[2:]
    merges["data"] = base64.b64encode(wrong).decode()


DAMAGES = {
    "merges should join tokens that are there before them": use_later_tokens,
    "merges should be 300 numbers in 600 bytes": lambda _, buffers: buffers.clear(),
    "most should be a whole number from 0, but is -1": lambda s, _: s.update(most=-1),
    "num_merges should be a whole number from 0 to 150": lambda s, _: s.update(num_merges=151),
    "text should be text of at most 200 letters": lambda s, _: s.update(text="a" * 201),
    "vocabulary should be a list of letters": lambda s, _: s.update(vocabulary="ab"),
    "counts should be 1 numbers": lambda s, _: s.update(vocabulary=["a"]),
}
