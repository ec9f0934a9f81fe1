"""Exercises that are answered on a page: what their check says there, and forms without sense."""

from types import SimpleNamespace

import pytest
import torch

from attncourse.checking.exercises import exercise
from attncourse.checking.functions import check_numbers, correct, not_yet
from attncourse.checking.mistakes import Mistake
from attncourse.checking.on_page import Choice, Choices, Lines, Numbers, Order


def verdict_at(widget, place):
    found = widget.verdicts[int.from_bytes(widget.table[2 * place : 2 * place + 2], "little")]
    return found["passed"], found["message"]


def making(page, check, *mistakes):
    return exercise(mistakes=mistakes, page=page)(check)


def is_seven(answer):
    known = SimpleNamespace(page=Numbers([7.0], ["x"]), mistakes=SEVEN)
    return check_numbers(answer, known, otherwise=["Look again."], praise="Fine.")


SEVEN = (Mistake([6.0], "One more."), Mistake(torch.tensor([8]), "One less."))


def test_numbers_are_known_then_close_then_others():
    long = Mistake([1.0, 2.0], is_seven([1.0, 2.0]).message)  # which is no answer of the page
    widget = making(Numbers([7.0], ["x"]), is_seven, *SEVEN, long).on_page()
    close = is_seven([7.002]).message
    assert [verdict_at(widget, place) for place in range(5)] == [
        (True, "Fine."),
        *((False, said) for said in ("One more.", "One less.", close, "Look again.")),
    ]
    assert "0.001" in close
    assert (widget.tolerance, widget.near, widget.groups) == (1e-3, 6e-3, [[3, 1]])


def test_rows_may_be_told_apart():
    def told(answer):
        return not_yet(str(answer.tolist()))

    page = Numbers([1.0, 2, 3], {"a": ["x", "y"], "b": ["z"]}, 0.01, near=0.01, rows_apart=True)
    widget = making(page, told, Mistake(torch.tensor([2.0, 1, 3]), "turned")).on_page()
    assert widget.groups == [[2, 2], [1, 1]]
    asked = [verdict_at(widget, place)[1] for place in range(6)]
    assert (asked[0], asked[2]) == ("[1.0, 2.0, 3.0]", "[2.0, 1.0, 3.0]")
    starts = [words.startswith(("[1.0, 2.0, ", "[2.0, 1.0, ")) for words in asked]
    ends = [words.endswith(", 3.0]") for words in asked]
    assert starts == [True] * 4 + [False] * 2 and ends == [True, False] * 3


CHOICES = {"p": "the first", "q": "the second"}


@pytest.mark.parametrize(
    ("page", "right", "answers"),
    [
        (Choice(CHOICES), "q", ["p", "q"]),
        (Choice([1, 2], each=["A", "B"]), [2, 1], [[1, 1], [1, 2], [2, 1], [2, 2]]),
        (
            Choice(CHOICES, each={"A": "Log A", "B": "Log B"}),
            {"A": "p", "B": "q"},
            [{"A": a, "B": b} for a in "pq" for b in "pq"],
        ),
        (
            Choices({"A": ["p", "q"], "B": {1: "one", 2: "two", 3: "three"}}, lambda a, b: (a, b)),
            ("p", 3),
            [("p", 1), ("p", 2), ("p", 3), ("q", 1), ("q", 2), ("q", 3)],
        ),
        (Lines("a\nb\nc", pick=2), [1, 3], [[1, 2], [1, 3], [2, 3]]),
        (Order({"b": "the second", "a": "the first"}), ["a", "b"], [["b", "a"], ["a", "b"]]),
    ],
)
def test_the_check_is_asked_about_every_answer(page, right, answers):
    def is_right(answer):
        return correct("Fine.") if answer == right else not_yet(f"Not {answer}.")

    widget = making(page, is_right).on_page()
    assert [verdict_at(widget, place) for place in range(len(answers))] == [
        (answer == right, "Fine." if answer == right else f"Not {answer}.") for answer in answers
    ]


def test_labels_are_what_the_page_says():
    each = Choice(CHOICES, each={"A": "Log A"})
    assert each.parts() == [("Log A", ["the first", "the second"])]
    slots = Choices({"A": ["p", "q"], "B": {1: "one", 2: "two"}}, lambda a, b: {"A": "q"})
    assert slots.parts() == [("A", ["p", "q"]), ("B", ["one", "two"])]
    code = Lines("  a\n    b\n  c")
    assert code.parts() == [("", ["a", "  b", "c"])]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: making(Order("abcdefgh"), is_seven).on_page(), "is_seven: .* 8192"),
        (lambda: making(None, is_seven).on_page(), "no page"),
        (lambda: Numbers([1.0, 2.0], ["x"]), "labels must .* 2 .* got 1"),
        (lambda: Lines("a\nb", pick=2), "pick must .* 2 lines"),
    ],
)
def test_a_form_without_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
