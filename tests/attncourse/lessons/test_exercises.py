"""What every exercise of every lesson must be and do, and how exercises are found."""

import inspect
import math
import signal
import sys
import warnings
from array import array
from itertools import accumulate, count, pairwise, product
from pathlib import Path
from pydoc import plaintext, render_doc

import pytest
import torch
from tools import ROOT

import attncourse.lessons
from attncourse.checking import calling
from attncourse.checking.calling import LONGEST_ERROR, call
from attncourse.checking.exercises import exercise
from attncourse.checking.functions import correct
from attncourse.checking.mistakes import Mistake
from attncourse.checking.on_page import Numbers, Order
from attncourse.lessons import l01, l03, l06, lessons
from attndoctor.support.check_result import CheckResult

LESSONS = lessons()
EXERCISES = {
    f"{lesson}.{name}": getattr(module, name)
    for lesson, module in LESSONS.items()
    for name in module.__all__
}
ON_PAGES = {name: found for name, found in EXERCISES.items() if found.page is not None}
NUMBERS = {name: found for name, found in ON_PAGES.items() if isinstance(found.page, Numbers)}
PASSING = {"l03.head_in_order": 2, "l05.design": 20, "l09.number_or_width": 2}  # else 1 answer
FEWEST_HINTS = 3  # of an exercise


def each(exercises):
    return pytest.mark.parametrize("name", exercises)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_s_page_calls_all_of_its_exercises(lesson):
    imported = f"from attncourse.lessons import {lesson} as check\n"
    texts = [page.read_text(encoding="utf-8") for page in ROOT.glob("book/*.md")]
    text = "".join(text for text in texts if imported in text)  # other pages may hold some
    for name in LESSONS[lesson].__all__:
        assert f"check.{name}(" in text
        assert (f"check.{name}.on_page()\n" in text) == (f"{lesson}.{name}" in ON_PAGES)
    assert (Path(__file__).parent / f"test_exercises_{lesson}.py").exists()


def test_each_folder_is_a_lesson_and_each_hint_of_its_texts_is_given():
    for folder in Path(attncourse.lessons.__file__).parent.glob("[!_]*/"):
        assert folder.name in LESSONS, f"{folder} needs the __init__.py of another lesson"
        own = [found for name, found in EXERCISES.items() if name.startswith(folder.name)]
        given = {mistake.hint for exercise in own for mistake in exercise.mistakes}
        for text in folder.glob("*.md"):
            lines = text.read_text(encoding="utf-8").splitlines()
            hints = {line for line in lines if line and line[0] not in " #"}
            assert hints <= given, f"{text} has a section that no exercise is named for"


@each(EXERCISES)
def test_an_exercise_is_documented_and_tells_each_mistake_its_own_hint(name):
    exercise = EXERCISES[name]
    assert (exercise.__doc__ or "").strip()
    assert len({mistake.hint for mistake in exercise.mistakes}) >= FEWEST_HINTS
    given = exercise.mistakes[0].answer
    unhashable = {key: [] for key in given} if isinstance(given, dict) else [[]]
    for nonsense in (..., unhashable, lambda *arguments: None):
        assert not exercise.check(nonsense)  # without the net that makes hints of errors
    for seed, mistake in enumerate(exercise.mistakes):
        torch.manual_seed(seed)
        assert exercise.check(mistake.answer) == CheckResult(False, mistake.hint)


def nearly_the_same(page, wrong):
    """Yield the answers of a page's table two times, off by nearly what the page overlooks."""
    tolerance, near = page.tolerance, page._near

    def answers(off, close, other):
        makers = [close, other] if near > tolerance else [other]
        groups = [[*(known + off), *(make(known) for make in makers)] for known in known_rows]
        return [torch.cat(mix).view_as(page._right) for mix in product(*groups)]

    def missed(known):  # a mistake, or any other numbers
        return known[-1] + 1.02 * tolerance if len(known) > 1 else known[0] + page.far(wrong)

    def barely_near(known):
        moved = known[0].clone()
        moved[-1] -= 0.98 * near
        return moved

    known_rows = page._known(wrong)
    yield answers(0.98 * tolerance, lambda k: k[0] + 1.02 * tolerance, lambda k: k[0] + 1.02 * near)
    yield answers(-0.98 * tolerance, barely_near, missed)


@each(ON_PAGES)
def test_a_page_tells_each_mistake_its_hint_and_takes_for_one_what_its_check_does(name):
    exercise, page = ON_PAGES[name], ON_PAGES[name].page
    wrong = [mistake.answer for mistake in exercise.mistakes]
    widget, answers = exercise.on_page(), [*page.answers(wrong)]
    verdicts = [widget.verdicts[place] for place in array("H", bytes(widget.table))]
    messages = {verdict["message"] for verdict in verdicts}
    assert {mistake.hint for mistake in exercise.mistakes} <= messages
    assert not any("can't be checked" in message for message in messages)
    passing = [i for i, verdict in enumerate(verdicts) if verdict["passed"]]
    assert len(passing) == PASSING.get(name, 1)
    right = answers[passing[0]]
    if isinstance(right, dict):
        assert not exercise({**right, "one too many": next(iter(right.values()))})
    if isinstance(page, Order):
        assert 0 not in passing  # the page begins with it
    if isinstance(page, Numbers):
        for again in nearly_the_same(page, wrong):
            told = [exercise.check(answer).message for answer in again]
            assert told == [verdict["message"] for verdict in verdicts]


@each(NUMBERS)
def test_the_first_wrong_row_of_numbers_has_a_hint_of_its_own(name):
    exercise, page = NUMBERS[name], NUMBERS[name].page
    right = torch.as_tensor(page.right).double()
    assert all(map(exercise, (right.tolist(), right.numpy(), [*right], (*right.numpy(),))))
    hints = []
    for start, end in pairwise(accumulate([0, *(len(labels) for _, labels in page.parts())])):
        alone, all_below = torch.zeros(2, right.numel())
        alone[start:end] = all_below[start:] = 1000.5
        hints.append(exercise(right + alone.view_as(right)).message)
        assert exercise(right + all_below.view_as(right)).message == hints[-1]
    close = {exercise(right + off * page.tolerance).message for off in (2, -4)}
    known = {mistake.hint for mistake in exercise.mistakes}
    assert len(close) == 1 and len({*hints, *close} - known) == len(hints) + 1


def leaves(*arguments):
    sys.exit("goodbye")


def raises_at_length(*arguments):
    raise ValueError("x" * 10 * LONGEST_ERROR)


def changes_settings(*arguments):
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.manual_seed(99)
    warnings.simplefilter("error")
    return torch.zeros(2)


@pytest.mark.parametrize("checked", [l06.causal_and_padding, l03.softmax_row])
def test_nonsense_gets_a_hint_of_some_length(checked):
    for nonsense in (
        [10**400], torch.zeros(2, 4).to_sparse(), leaves, raises_at_length, changes_settings,
        lambda: 0, lambda *arguments: torch.zeros(1).expand(10**12),
    ):  # fmt: skip
        verdict = checked(nonsense)
        assert not verdict and 20 < len(verdict.message) < 600


def test_a_reader_s_settings_stay_and_change_no_verdict_and_no_later_call():
    torch.manual_seed(3)
    filters, wanted = list(warnings.filters), torch.rand(3)
    torch.manual_seed(3)
    l06.leaks(changes_settings)
    assert torch.equal(torch.rand(3), wanted)
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()
    assert warnings.filters == filters
    mistake = l06.leaks.mistakes[0]
    with torch.no_grad(), torch.device("meta"):
        assert l06.leaks(mistake.answer).message == mistake.hint
    assert call(changes_settings).outputs.dtype == torch.float64  # as the function wanted it
    assert call(lambda: torch.zeros(2)).outputs.dtype == torch.float32
    assert call(lambda: torch.ones(2, requires_grad=True) * 2).outputs.requires_grad


def test_a_reader_can_stop_a_check_and_whatever_else_ends_it_becomes_a_hint():
    def stopped(*arguments):
        raise KeyboardInterrupt

    for function in (call, lambda stopped: exercise(mistakes=())(stopped)("an answer")):
        with pytest.raises(KeyboardInterrupt):
            function(stopped)
    verdict = exercise(mistakes=())(leaves)("an answer")
    assert not verdict and "SystemExit: goodbye" in verdict.message


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such alarm")
def test_a_loop_without_an_end_is_stopped_and_named(monkeypatch):
    monkeypatch.setattr(calling, "LONGEST_CALL", 0.2)
    verdict = l01.merge_pair(lambda ids, pair, new: [ids for _ in count() if not ids])
    assert not verdict and "0.2 seconds" in verdict.message
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        (lambda x: x.max(-1) + 1, "`.values`"),
        (lambda x: x.transpose(0, 1).view(-1), "`reshape`"),
        (lambda x: x[None][x > 0], "both shapes"),
        (lambda x: x if x else -x, "`is not None`"),
        (lambda x: torch.nn.Linear(2, 2).weight.zero_(), "torch.no_grad()"),
        (lambda x: setattr(torch.nn.Linear(2, 2), "weight", x), "copy_"),
        (lambda x: torch.autograd.grad(x.sum(), x), "requires_grad_()"),
        (lambda x: x.view(2, 6 / 2), "//"),
        (raises_at_length, "xxx ... (called"),
        (lambda x: x.zero_(), "number 1 in place"),
        (lambda x: x.view(7, 7), "multiply the sizes"),
        (lambda x: torch.stack(x.split([1, 2], 1)), "the axis that you wanted to cut"),
        (lambda x: torch.cat([x, None]), "is None"),
        (lambda x: {"heads": 2}["kv_heads"], "`in` asks"),
        (lambda x: list(x)[2], "has no neighbor"),
        (lambda x: torch.sqrt(2.0), "those of `math`"),
        (lambda x: math.log(0), "no logarithm"),
        (lambda x: [B for B, T, d in [x.shape]], "a shape as its sizes"),
        (lambda x: x.long().div_(2), "in place"),
        (lambda x: x.softmax(2), "-1 is the last"),
        (lambda x: x.shape(0), "take brackets"),
        (lambda x: x + None, "never given"),
        (lambda x: [1, 2].sum(), "torch.tensor makes"),
        (lambda x: None, "return?"),
        (lambda x: (x, None), "One of the things"),
    ],
)
def test_what_goes_wrong_is_named_and_what_is_usual_comes_with_advice(slip, words):
    assert words in call(slip, (torch.randn(2, 3),)).complaint


def test_an_error_that_is_unusual_comes_without_advice():
    complaint = call(lambda x: x.unfold(0, 9, 1), (torch.randn(2, 3),)).complaint
    assert "raised RuntimeError: " in complaint and complaint.endswith("a tensor [2, 3]).")


FACE = inspect.getsource(LESSONS["l03"])  # another lesson's, with nothing changed

BY_HAND = """
from attncourse.checking.functions import correct, not_yet
from attncourse.checking import Mistake, exercise

@exercise(mistakes=[Mistake(2, "One less.")])
def one(answer):
    return correct("Fine.") if answer == 1 else not_yet("One less.")
"""


def test_the_folder_of_a_new_lesson_is_found_and_an_ambiguous_one_refused(tmp_path, monkeypatch):
    folder = tmp_path / "l98"
    folder.mkdir()
    (folder / "__init__.py").write_text(FACE, encoding="utf-8")
    (folder / "by_hand.py").write_text(BY_HAND, encoding="utf-8")
    paths = [*attncourse.lessons.__path__, str(tmp_path)]
    monkeypatch.setattr(attncourse.lessons, "__path__", paths)

    def found():
        for name in [name for name in sys.modules if name.startswith("attncourse.lessons.l98")]:
            del sys.modules[name]
        vars(attncourse.lessons).pop("l98", None)
        return lessons()

    assert list(found()) == [*LESSONS, "l98"]
    l98 = found()["l98"]
    assert l98.__all__ == ["one"] and l98.one.mistakes == (Mistake(2, "One less."),)
    assert l98.one(1) and not l98.one(2)
    for file, text, error, words in (
        ("l98/more.py", BY_HAND, ValueError, r"more\.py and by_hand\.py .* called one"),
        ("l98/one.py", "", ValueError, r"by_hand\.py: .* called one, as one\.py"),
        ("l99.py", FACE, TypeError, "l99 must be a folder"),
    ):
        (tmp_path / file).write_text(text, encoding="utf-8")
        with pytest.raises(error, match=words):
            found()
        (tmp_path / file).unlink()


def test_an_exercise_that_is_not_there_is_named_and_one_that_is_explained():
    with pytest.raises(AttributeError, match=r"'softmaxrow'; .*softmax_row"):
        l03.softmaxrow([1])
    text = render_doc(l03.softmax_row, renderer=plaintext)
    assert "softmax_row(answer: " in text and l03.softmax_row.__doc__.splitlines()[0] in text


def test_a_verdict_s_marks_become_elements_and_products_and_angles_stay():
    message = "*You* have `i * d_k`, and i * d_k < j * d_k; *all of it*."
    shown = CheckResult(False, message)._repr_html_()
    for part in ("<em>You</em>", "<code>i * d_k</code>", "i * d_k &lt; j * d_k", "<em>all of it"):
        assert part in shown
    assert "verdict-open" in shown and "verdict-open" not in correct(message)._repr_html_()
    assert repr(correct(message)).endswith(message)
