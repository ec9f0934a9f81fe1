"""What every exercise of every lesson must be and do, and how exercises are found."""

import inspect
import re
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from pydoc import plaintext, render_doc
from textwrap import dedent

import pytest
import torch
from tools import ROOT

import attncourse.lessons
from attncourse.checking.calling import call
from attncourse.checking.exercise import Exercise, Mistake, exercise
from attncourse.checking.functions import correct, not_yet
from attncourse.checking.on_page import Numbers
from attncourse.lessons import lessons
from attndoctor.check_result import CheckResult

LESSONS = lessons()
EXERCISES = {
    f"{lesson}.{name}": getattr(module, name)
    for lesson, module in LESSONS.items()
    for name in module.__all__
}
FEWEST_HINTS = 3  # of an exercise


def problems_with_lesson(
    lesson: str, exercises: Iterable[str], pages: dict[str, str], on_page: Iterable[str] = ()
) -> list[str]:
    """Say what a lesson's exercises lack; an empty list if nothing.

    Args:
        on_page: those of the exercises that are answered on the page itself.
        pages: the text of each page, by the name of its file.
    """
    if not re.fullmatch(r"l\d\d", lesson):
        return [f"the folder of lesson 6 is called l06, and this one {lesson}"]
    exercises = list(exercises)
    problems = []
    page = next((text for name, text in pages.items() if name.startswith(f"{lesson.upper()}_")), "")
    if not page:
        return [*problems, f"{lesson} has no page book/{lesson.upper()}_Its_Title.md"]
    imported = f"from attncourse.lessons import {lesson} as check\n"
    if imported not in page:
        problems.append(f"the page doesn't import its checks: from ... import {lesson} as check")
    else:  # a reference page may hold some of them
        page = "".join(text for text in pages.values() if imported in text)
    problems += [
        f"no cell of the page calls check.{name}(...)"
        for name in exercises
        if f"check.{name}(" not in page
    ]
    problems += [
        f"no cell of the page holds check.{name}.on_page()"
        for name in on_page
        if f"check.{name}.on_page()\n" not in page
    ]
    return problems


def problems_with(exercise: Exercise) -> list[str]:
    """Say what is wrong with an exercise; an empty list if nothing is."""
    name = exercise.__name__
    problems = []
    if not (exercise.__doc__ or "").strip():
        problems.append(f"{name} has no docstring, which is its entry on the API page")
    hints = {mistake.hint for mistake in exercise.mistakes}
    if len(hints) < FEWEST_HINTS:
        problems.append(f"{name} has {len(hints)} hints; at least {FEWEST_HINTS} are wanted")
    for mistake in exercise.mistakes:
        verdict = exercise(mistake.answer)
        if verdict.passed:
            problems.append(f"a mistake passes, whose hint is: {mistake.hint}")
        elif verdict.message != mistake.hint:
            problems.append(f"instead of {mistake.hint!r} a mistake is told {verdict.message!r}")
    return problems


def raises(*arguments):
    raise KeyError("a reader's slip")


def stub(*arguments):
    raise NotImplementedError


def leaves(*arguments):
    sys.exit("goodbye")


class UnreadableError(Exception):
    def __str__(self):
        raise ValueError


def raises_what_cannot_be_read(*arguments):
    raise UnreadableError


def empties_what_it_is_given(x, *arguments):
    x.data = torch.empty(x.shape, device="meta")
    return x


class NoArray:
    """Says that it can be made a tensor, and then can't."""

    def __array__(self, *arguments):
        raise SystemExit("goodbye")

    def __len__(self):
        raise ArithmeticError


def changes_settings(*arguments):
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.manual_seed(99)
    warnings.simplefilter("error")
    return torch.zeros(2)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_complete(lesson):
    pages = {page.name: page.read_text(encoding="utf-8") for page in ROOT.glob("book/*.md")}
    names = LESSONS[lesson].__all__
    on_page = [name for name in names if getattr(LESSONS[lesson], name).page is not None]
    assert problems_with_lesson(lesson, names, pages, on_page) == []


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_s_own_cases_are_tested(lesson):
    file = f"tests/attncourse/lessons/test_exercises_{lesson}.py"
    assert (ROOT / file).exists(), f"{lesson} has no {file}, for right answers in other words"


def folders_without_face(folder: Path) -> list[str]:
    """Return the folders of exercises that Python doesn't take for a lesson's."""
    inner = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "_"]
    return [path.name for path in inner if not (path / "__init__.py").exists()]


def test_each_folder_is_a_lesson(tmp_path):
    (tmp_path / "l99").mkdir()
    assert folders_without_face(tmp_path) == ["l99"]
    found = folders_without_face(Path(attncourse.lessons.__file__).parent)
    assert not found, f"{found} need an __init__.py: that of another lesson, with another title"


class TestEveryExercise:
    @pytest.fixture(params=EXERCISES.values(), ids=EXERCISES)
    def exercise(self, request):
        return request.param

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_each_mistake_gets_its_own_hint(self, exercise, seed):
        torch.manual_seed(seed)
        assert problems_with(exercise) == []

    @pytest.mark.parametrize(
        "nonsense",
        [
            None, ..., "an answer", 7, [], [..., ...], torch.zeros(0), [10**400],
            torch.full((2, 9), torch.nan), torch.zeros(2, 4).to_sparse(),
            torch.zeros(1).expand(10**12), {"A": torch.zeros(2), "B": [], "C": None}, sys.exit,
            NoArray, NoArray(),
        ],
        ids=lambda nonsense: type(nonsense).__name__,
    )  # fmt: skip
    def test_nonsense_is_not_yet(self, exercise, nonsense):
        verdict = exercise(nonsense)
        assert isinstance(verdict, CheckResult) and not verdict

    @pytest.mark.parametrize(
        "function",
        [
            stub, raises, lambda *a: None, lambda *a: a, lambda *a: "text", lambda: 0, leaves,
            raises_what_cannot_be_read, empties_what_it_is_given, changes_settings,
            lambda *a: NoArray(), lambda *a: torch.zeros(1).expand(10**12),
        ],
    )  # fmt: skip
    def test_a_broken_function_is_not_yet(self, exercise, function):
        verdict = exercise(function)
        assert isinstance(verdict, CheckResult) and not verdict
        assert repr(verdict).startswith("Not yet. ") and 20 < len(verdict.message) < 600

    def test_the_reader_s_random_numbers_stay_the_same(self, exercise):
        torch.manual_seed(3)
        exercise(exercise.mistakes[0].answer)
        after_a_check = torch.rand(3)
        torch.manual_seed(3)
        assert torch.equal(torch.rand(3), after_a_check)

    def test_the_reader_s_settings_stay_the_same(self, exercise):
        filters = list(warnings.filters)
        exercise(changes_settings)
        assert torch.get_default_dtype() == torch.float32
        assert torch.is_grad_enabled()
        assert warnings.filters == filters

    def test_hints_are_the_same_under_any_settings(self, exercise):
        torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad(), torch.device("meta"):
                verdict = exercise(exercise.mistakes[0].answer)
        finally:
            torch.set_default_dtype(torch.float32)
        assert verdict.message == exercise.mistakes[0].hint

    def test_help_shows_its_documentation(self, exercise):
        text = render_doc(exercise, renderer=plaintext)
        assert f"{exercise.__name__}(answer: " in text
        assert exercise.__doc__.splitlines()[0] in text


NUMBERS = {name: found for name, found in EXERCISES.items() if isinstance(found.page, Numbers)}


@pytest.mark.parametrize("exercise", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda numbers: torch.tensor(numbers) * torch.nan,
        lambda numbers: torch.tensor(numbers) + torch.inf,
        lambda numbers: torch.tensor(numbers) + 1j,
        lambda numbers: numbers[:-1],
        lambda numbers: [*numbers, 0.0],
        lambda numbers: [str(number) for number in numbers],
        lambda numbers: [str(number).replace(".", ",") for number in numbers],
        str,
    ],
)
def test_right_numbers_that_are_spoiled_are_told_so(exercise, spoil):
    right = torch.as_tensor(exercise.page.right).double()
    assert exercise(right) and exercise(right.tolist()) and exercise(right.numpy())
    verdict = exercise(spoil(right.flatten().tolist()))
    assert not verdict and "can't be checked" not in verdict.message


def test_a_reader_can_stop_a_check():
    def stopped(*arguments):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(stopped)
    with pytest.raises(KeyboardInterrupt):
        exercise(mistakes=())(stopped)("an answer")


def test_what_a_check_does_not_expect_becomes_a_hint():
    for broken, word in ((raises, "KeyError: "), (leaves, "SystemExit: goodbye")):
        verdict = exercise(mistakes=())(broken)("an answer")
        assert not verdict and word in verdict.message


def test_an_error_without_a_message_is_named():
    assert "raised UnreadableError: (and its" in call(raises_what_cannot_be_read).complaint


@pytest.mark.parametrize(
    ("slip", "advice"),
    [
        (lambda x: x.max(-1) + 1, "`.values`"),
        (lambda x: x.transpose(0, 1).view(-1), "`reshape` copies"),
        (lambda x: x[None][x > 0], "`masked_fill`"),
        (lambda x: x if x else -x, "`is not None`"),
        (lambda x: torch.nn.Linear(2, 2).weight.zero_(), "torch.no_grad()"),
        (lambda x: setattr(torch.nn.Linear(2, 2), "weight", x), "by copy_"),
        (lambda x: torch.autograd.grad(x.sum(), x), "requires_grad_()"),
        (lambda x: x.view(2, 6 / 2), "by //"),
        (lambda x: torch.zeros(6 / 2), "by //"),
        (lambda x: x.reshape(7, 7), ""),
    ],
)
def test_an_error_that_is_usual_comes_with_advice(slip, advice):
    arguments = (torch.randn(2, 3),)
    complaint = call(slip, arguments).complaint
    assert complaint.startswith("Your function raised ")
    assert (
        complaint.endswith("(called with a tensor [2, 3]).")
        if not advice
        else (advice in complaint)
    )


def test_a_changed_setting_does_not_reach_the_next_call():
    assert call(changes_settings).outputs.dtype == torch.float64  # as the function wanted it
    assert call(lambda: torch.zeros(2)).outputs.dtype == torch.float32
    assert call(lambda: torch.ones(2, requires_grad=True) * 2).outputs.requires_grad


def sections_of_texts() -> list[tuple[Path, str]]:
    """Return the sections of the texts beside the exercises: the file and the name."""
    texts = sorted(Path(attncourse.lessons.__file__).parent.glob("l*/*.md"))
    headings = re.compile(r"^# (\w+)", re.M)
    return [(text, name) for text in texts for name in headings.findall(text.read_text("utf-8"))]


def test_each_section_of_a_text_is_read():
    sections = sections_of_texts()
    assert len(sections) > 20
    unread = [
        f"{text.name}: {name}"
        for text, name in sections
        if f'read_mistakes("{name}", globals())' not in text.with_suffix(".py").read_text("utf-8")
    ]
    assert not unread, f"no check reads {unread}"


# --- what is wrong is told -----------------------------------------------------------------------

RIGHT = (Mistake(2, "No."), Mistake(3, "Off."), Mistake(4, "Far."))
HINTS = {mistake.answer: mistake.hint for mistake in RIGHT}


def is_one(answer):
    """Check that the answer is 1."""
    return correct("Fine.") if answer == 1 else not_yet(HINTS.get(answer, "Something else."))


def undocumented(answer):
    return is_one(answer)


def test_a_sound_exercise_has_no_problems():
    assert problems_with(Exercise(is_one, RIGHT)) == []


@pytest.mark.parametrize(
    ("check", "mistakes", "problem"),
    [
        (undocumented, RIGHT, "undocumented has no docstring, which is its entry on the API page"),
        (is_one, RIGHT[:2], "is_one has 2 hints; at least 3 are wanted"),
        (
            is_one,
            (*RIGHT[:2], Mistake(3.0, "Off.")),
            "is_one has 2 hints; at least 3 are wanted",
        ),
        (is_one, (*RIGHT, Mistake(1, "One.")), "a mistake passes, whose hint is: One."),
        (
            is_one,
            (*RIGHT[:2], Mistake(4, "Near.")),
            "instead of 'Near.' a mistake is told 'Far.'",
        ),
    ],
)
def test_an_incomplete_exercise_is_told_what_is_missing(check, mistakes, problem):
    assert problems_with(Exercise(check, mistakes)) == [problem]


COMPLETE = "from attncourse.lessons import l06 as check\n" + "".join(
    f"check.e{i}(x)" for i in "1234"
)


@pytest.mark.parametrize(
    ("lesson", "names", "page", "problem"),
    [
        ("l06", ["e1", "e2", "e3", "e4"], {"L06_Six.md": COMPLETE}, None),
        ("l06", ["e1", "e2", "e3", "e5"], {"L06_Six.md": COMPLETE},
         "no cell of the page calls check.e5(...)"),
        ("l06", ["e1", "e2", "e3", "e4"], {"L06_Six.md": COMPLETE.replace("l06", "l05")},
         "the page doesn't import its checks: from ... import l06 as check"),
        ("l06", ["e1", "e2", "e3", "e4"], {"L07_Seven.md": COMPLETE},
         "l06 has no page book/L06_Its_Title.md"),
        ("six", [], {}, "the folder of lesson 6 is called l06, and this one six"),
    ],
)  # fmt: skip
def test_an_incomplete_lesson_is_told_what_is_missing(lesson, names, page, problem):
    assert problems_with_lesson(lesson, names, page) == ([problem] if problem else [])


def test_a_lesson_shows_what_is_answered_on_its_page():
    names, page = ["e1", "e2", "e3", "e4"], f"{COMPLETE}\ncheck.e2.on_page()\n"
    assert problems_with_lesson("l06", names, {"L06_Six.md": page}, ["e2", "e3"]) == [
        "no cell of the page holds check.e3.on_page()"
    ]


# --- a new lesson is found by itself --------------------------------------------------------------

FACE = inspect.getsource(LESSONS["l03"])  # another lesson's, with nothing changed

BY_HAND = dedent('''
    """One number by hand."""

    from typing import Any

    from attndoctor.check_result import CheckResult
    from attncourse.checking.functions import correct, not_yet
    from attncourse.checking.exercise import Mistake, exercise


    @exercise(mistakes=[Mistake(2, "One less.")])
    def one(answer: Any) -> CheckResult:
        """Check that the answer is 1."""
        return correct("Fine.") if answer == 1 else not_yet("One less.")
    ''')


@pytest.fixture
def new_lesson(tmp_path, monkeypatch):
    """Return the folder of a lesson 98 that stands beside the others."""
    folder = tmp_path / "l98"
    folder.mkdir()
    (folder / "__init__.py").write_text(FACE, encoding="utf-8")
    (folder / "by_hand.py").write_text(BY_HAND, encoding="utf-8")
    monkeypatch.setattr(
        attncourse.lessons, "__path__", [*attncourse.lessons.__path__, str(tmp_path)]
    )
    yield folder
    for name in [name for name in sys.modules if name.startswith("attncourse.lessons.l98")]:
        del sys.modules[name]
    vars(attncourse.lessons).pop("l98", None)


def test_the_folder_of_a_new_lesson_is_found(new_lesson):
    assert list(lessons()) == [*LESSONS, "l98"]
    l98 = lessons()["l98"]
    assert l98.__all__ == ["one"]
    assert l98.one(1) and l98.one(2).message == "One less."
    assert l98.one.mistakes == (Mistake(2, "One less."),)
    assert problems_with(l98.one) == ["one has 1 hints; at least 3 are wanted"]


def test_an_exercise_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match=r"no exercise 'softmaxrow'; it has .*softmax_row"):
        LESSONS["l03"].softmaxrow([1])


def test_two_exercises_of_one_name_are_refused(new_lesson):
    (new_lesson / "more.py").write_text(BY_HAND, encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"more.py and by_hand.py both have an exercise called one"
    ):
        lessons()


def test_an_exercise_with_the_name_of_a_file_is_refused(new_lesson):
    (new_lesson / "one.py").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"by_hand.py: an exercise can't be called one, as one.py"):
        lessons()


def test_a_lesson_in_a_single_file_is_refused(new_lesson):
    (new_lesson.parent / "l99.py").write_text(FACE, encoding="utf-8")
    with pytest.raises(TypeError, match="l99 must be a folder"):
        lessons()


def test_a_verdict_s_marks_become_elements_and_products_and_angles_stay():
    message = "*You* have `i * d_k`, and i * d_k < j * d_k; *all of it*."
    shown = CheckResult(False, message)._repr_html_()
    assert shown == (
        '<p class="verdict verdict-open"><strong>Not yet.</strong> <em>You</em> have '
        "<code>i * d_k</code>, and i * d_k &lt; j * d_k; <em>all of it</em>.</p>"
    )
    assert repr(CheckResult(True, message)) == f"Correct. {message}"
