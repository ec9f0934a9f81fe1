"""Compare answers with the right ones: numbers, choices, functions.

A check never raises for a wrong answer and never prints the solution. It returns a `CheckResult`.
Its message names the mistake when the answer is exactly what that mistake would produce.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product
from numbers import Real
from typing import Any

import torch

from attncourse.checking.argument_hints import changes, ignored, where
from attncourse.checking.calling import (
    Outcome,
    as_outputs,
    call,
    describe,
    read_aloud,
    shortened,
)
from attncourse.checking.exercises import Exercise
from attncourse.checking.mistakes import Mistake
from attncourse.checking.numbers import (
    as_tensor,
    holds,
    in_shape_of,
    same_numbers,
    set_of_numbers,
)
from attncourse.checking.on_page import NEAR, Choice, Choices, Numbers
from attncourse.checking.tensor_hints import Pair, is_simple, relation
from attndoctor.support.check_result import CheckResult

FEW = 12  # whole numbers that a hint shows
Outcomes = Sequence[tuple[Sequence[Any], Outcome, Outcome]]  # a case, what came, what was wanted
Known = Callable[[], Iterator[tuple[str, Callable[[Sequence[Any]], Outcome]]]]


def correct(message: str) -> CheckResult:
    """Return a passing verdict."""
    return CheckResult(True, message)


def not_yet(hint: str) -> CheckResult:
    """Return a failing verdict with a hint."""
    return CheckResult(False, hint)


def not_a_function(answer: Any) -> CheckResult:
    """Return the verdict on an answer that should be a function, and can't be called."""
    return not_yet(
        f"A function was wanted, but a {type(answer).__name__} came. "
        "Hand in the function itself, without calling it."
    )


def check_choice(answer: Any, right: str, exercise: Exercise, praise: str) -> CheckResult:
    """Compare a choice, one of a few texts, with the right one."""
    hints = {mistake.answer: mistake.hint for mistake in exercise.mistakes}
    answer = str(answer) if isinstance(answer, Real) else answer  # 2.2 is as good as "2.2"
    if not isinstance(answer, str) or answer not in {right, *hints}:
        return not_yet(f"One of these was wanted: {', '.join(map(repr, sorted([right, *hints])))}.")
    return correct(praise) if answer == right else not_yet(hints[answer])


def check_choices(
    answer: Any,
    right: Mapping[Any, str],
    exercise: Exercise,
    *,
    wrong: Mapping[Any, str] | None = None,
    praise: str,
) -> CheckResult:
    """Compare a dict of choices, one for each of several things, with the right one.

    Mistakes are tried first. Where none explains all choices, the first wrong one gets a hint.

    Args:
        exercise: whose page is a `Choice`, or `Choices` in the order of `right`.
        wrong: the hint on each thing. If it isn't given, each wrong choice alone is a mistake, and
            has its hint.
    """
    page = exercise.page
    assert isinstance(page, Choice | Choices)
    each = page.slots.values() if isinstance(page, Choices) else [page.choices] * len(right)
    offered = dict(zip(right, each, strict=True))
    if isinstance(answer, dict):  # 2 is as good as "2"
        by_text = {key: {str(choice): choice for choice in some} for key, some in offered.items()}
        answer = {key: by_text.get(key, {}).get(str(said), said) for key, said in answer.items()}
    if misfit := what_misfits(answer, offered):
        return not_yet(misfit)
    for mistake in exercise.mistakes:
        if answer == mistake.answer:
            return not_yet(mistake.hint)
    for key, choice in right.items():
        if answer[key] != choice:
            if wrong:
                return not_yet(wrong[key])
            alone = {**right, key: answer[key]}
            return not_yet(next(m.hint for m in exercise.mistakes if m.answer == alone))
    return correct(praise)


def what_misfits(answer: Any, offered: Mapping[Any, Collection[Any]]) -> str:
    """Return what keeps an answer from being a dict with a choice of each thing's; or nothing."""
    if not isinstance(answer, dict) or set(answer) != set(offered):
        return f"A dictionary with these keys was wanted: {', '.join(map(str, offered))}."
    for key, choices in offered.items():
        if not isinstance(answer[key], str | Real) or answer[key] not in choices:
            return f"{key}: one of these was wanted: {', '.join(map(str, choices))}."
    return ""


def check_lines(
    answer: Any, asked: Mapping[int, str], innocent: Mapping[int, str], praise: str
) -> CheckResult:
    """Compare numbers of lines of a listing, counted from 1, with those that hold something.

    Args:
        asked: of each line that does, what to ask of it.
        innocent: of each other line, why it doesn't.
    """
    lines = set_of_numbers(answer)
    if not lines or not lines <= asked.keys() | innocent.keys():
        return not_yet(f"A list of line numbers from 1 to {len(asked) + len(innocent)} was wanted.")
    if wrong := sorted(lines & innocent.keys()):
        return not_yet(innocent[wrong[0]])
    if not (missing := asked.keys() - lines):
        return correct(praise)
    wanted = ("no", "one", "two", "three", "four")[len(asked)]
    return not_yet(
        f"{len(lines)} of the {wanted} so far, and no line too many. "
        f"Ask of another line: {asked[min(missing)]}"
    )


def check_numbers(
    answer: Any, exercise: Exercise, *, otherwise: Sequence[str], praise: str
) -> CheckResult:
    """Compare numbers that a reader worked out with those that the page asks for.

    Mistakes are tried first, so that a typical wrong result gets its own hint. Where none explains
    all numbers, the first row of fields that is wrong gets the hint of the mistake that it holds,
    whatever stands in the others; or its own.

    Args:
        exercise: whose page is `Numbers`.
        otherwise: the hint on each row that is wrong in no usual way. It should say where to look,
            never the number.
    """
    page = exercise.page
    assert isinstance(page, Numbers)
    expected, tolerance = torch.as_tensor(page.right), page.tolerance
    if answer is None or answer is ...:
        return not_yet("Nothing is filled in so far: replace the ... with your numbers.")
    given = in_shape_of(expected, answer)
    if given is None:
        return not_yet(_unreadable(answer))
    if given.shape != expected.shape:
        message = f"The shape should be {list(expected.shape)}, but yours is {list(given.shape)}."
        if given.numel() > expected.numel() and not holds(answer, (float, torch.Tensor)):
            message += " (A comma separates numbers: write 0.25 with a point.)"
        return not_yet(message)
    if not given.isfinite().all():
        return not_yet("One of your numbers is infinite, or isn't a number: nan.")
    ours, right = given.flatten().tolist(), expected.flatten().tolist()
    if _are_near(ours, right, tolerance):
        return correct(praise)
    shape = given.shape
    known = [m for m in exercise.mistakes if m.numbers is not None and m.numbers.shape == shape]
    for mistake in known:
        if _are_near(ours, mistake.flat, tolerance):
            return not_yet(mistake.hint)
    start = 0
    for (_, fields), hint in zip(page.parts(), otherwise, strict=True):
        row = slice(start, start + len(fields))
        if not _are_near(ours[row], right[row], tolerance):
            for mistake in known:
                if not mistake.whole and _are_near(ours[row], mistake.flat[row], tolerance):
                    return not_yet(mistake.hint)
        if not _are_near(ours[row], right[row], NEAR * tolerance):
            return not_yet(hint)
        start += len(fields)
    return not_yet(f"Very close. Give more digits: within {tolerance:g} counts as equal.")


def _unreadable(answer: Any) -> str:
    """Return why an answer can't be read as a list of numbers."""
    if holds(answer, type(...)):
        return "Something isn't filled in so far: replace each ... with a number."
    if holds(answer, str):
        return "Write numbers without quotation marks, and with a point: 0.25, or 1/4."
    if holds(answer, complex):
        return "Real numbers were wanted, and one of yours is complex."
    return "A list or tensor of numbers was wanted, and yours can't be read as one."


def _are_near(left: Sequence[float], right: Sequence[float], tolerance: float) -> bool:
    for a, b in zip(left, right, strict=True):  # a page asks its check thousands of times
        if not abs(a - b) <= tolerance:
            return False
    return True


def agree(left: Outcome, right: Outcome, tolerance: float) -> bool:
    """Return whether two outcomes are the same: the same error, or the same shapes and values."""
    if left.error is not None or right.error is not None:
        return left.error is right.error
    ours, theirs = as_outputs(left.outputs), as_outputs(right.outputs)
    return len(ours) == len(theirs) and all(
        same_numbers(a, b, tolerance) for a, b in zip(ours, theirs, strict=True)
    )


def _agree_but_for_a_guard(left: Outcome, right: Outcome, tolerance: float) -> bool:
    """Return whether two outcomes are the same once what was divided by 0 is 0, in one or both."""
    ours, theirs = (
        [found.nan_to_num(0, 0, 0) for part in parts if (found := as_tensor(part)) is not None]
        for parts in (as_outputs(left.outputs), as_outputs(right.outputs))
    )
    return agree(Outcome(ours, error=left.error), Outcome(theirs, error=right.error), tolerance)


def check_function(
    answer: Any,
    reference: Callable,
    cases: Sequence[Sequence[Any]],
    mistakes: Sequence[Mistake] = (),
    *,
    output_names: Sequence[str],
    tolerance: float = 1e-5,
    praise: str,
    as_function: Callable[[Any], Callable] = lambda answer: answer,
    otherwise: Callable[[Any], str] = lambda answer: "",
) -> CheckResult:
    """Compare a reader's function with `reference` on every case (a sequence of arguments).

    When something differs, each mistake is run on the same cases; the one that behaves like the
    reader's function on all of them gives the hint. Otherwise the hint describes the first case
    that differs: counts and short lists of whole numbers by what was wanted and what came, others
    without giving the right numbers away.

    Args:
        as_function: turns what is handed in into the function to compare, for answers whose own
            results (a module, say) can't be compared.
        otherwise: a hint on what is handed in, or nothing, where no mistake explains it.
    """
    if not callable(answer):
        return not_a_function(answer)
    given = [call(as_function(answer), case) for case in cases]
    wanted = [call(reference, case) for case in cases]
    outcomes = list(zip(cases, given, wanted, strict=True))
    wrong = [(c, g, w) for c, g, w in outcomes if not agree(g, w, tolerance)]
    if not wrong:
        return correct(praise)

    def known() -> Iterator[Any]:
        """Yield each usual mistake's hint, and what it answers in a case."""
        for mistake in mistakes:
            yield mistake.hint, partial(call, as_function(mistake.answer))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mistakes are tried on arguments that don't fit them
        return not_yet(
            _of_a_mistake(outcomes, wrong, known, tolerance)
            or otherwise(answer)
            or _of_an_argument(answer, reference, outcomes, wrong, known, tolerance)
            or _of_a_case(answer, reference, outcomes, wrong, output_names, tolerance)
        )


def _of_a_mistake(outcomes: Outcomes, wrong: Outcomes, known: Known, tolerance: float) -> str:
    """Return the hint of the mistake that behaves like the answer in every case, if one does."""
    for same in (agree, _agree_but_for_a_guard):
        for hint, answered in known():
            if all(
                given.complaint == (theirs := answered(case)).complaint
                and same(given, theirs, tolerance)
                for case, given, _ in outcomes
            ) and any(agree(given, answered(case), tolerance) for case, given, _ in wrong):
                return hint
    return ""


def _of_an_argument(
    answer: Any, reference: Callable, outcomes: Outcomes, wrong: Outcomes, known: Known,
    tolerance: float,
) -> str:  # fmt: skip
    """Return a hint that names the one changed argument with which all cases agree, or ""."""
    differing = [(given, wanted) for _, given, wanted in wrong]
    each = [_pairs(differing, i, tolerance) for i in range(len(as_outputs(wrong[0][2].outputs)))]
    came = [torch.cat([ours.flatten() for ours, _ in pairs]) for pairs in each if pairs]
    if all(numbers[~numbers.isnan()].unique().numel() <= 2 for numbers in came):
        return ""  # one or two numbers may agree by chance
    others, found = list(changes(answer, wrong[0][0])), []
    for says, changed in others:
        made = [(given, call(reference, changed(case))) for case, given, _ in outcomes]
        tried = [(given, other) for given, other in made if other.error is None]
        if 2 * len(tried) > len(made) and all(agree(g, o, tolerance) for g, o in tried):
            found.append(says)
    simple = all(is_simple(pairs, tolerance) for pairs in each if pairs)  # explains as much by less
    if not (found or simple or any(given.error for _, given, _ in outcomes)):
        for (says, changed), (hint, answered) in product(others, known()):
            if all(agree(given, answered(changed(case)), tolerance) for case, given, _ in outcomes):
                found.append(f"{hint} {says.replace('seems', 'also seems', 1)}")
    return found[0] if len(found) == 1 else ""  # of several, none is sure


def _of_a_case(
    answer: Any, reference: Callable, outcomes: Outcomes, wrong: Outcomes,
    output_names: Sequence[str], tolerance: float,
) -> str:  # fmt: skip
    """Return what is wrong in the first case that is, and how many cases are right."""
    case, first, _ = wrong[0]
    message = first.complaint
    if not message:
        unread = ignored(answer, reference)  # which explains more than a guess at the numbers
        message = _difference(
            case, [(g, w) for _, g, w in wrong], output_names, tolerance, guess=not unread
        )
        message += unread
    right = [case for case, given, wanted in outcomes if agree(given, wanted, tolerance)]
    if not right:
        return message
    which = where(answer, right, [case for case, _, _ in wrong]) if len(wrong) > 1 else ""
    return f"{message} {which or f'({len(right)} of {len(outcomes)} cases are right.)'}"


def _in_brief(numbers: torch.Tensor) -> str:
    shown = ", ".join(f"{number:.10g}" for number in numbers.flatten().tolist())
    return f"[{shown}]" if numbers.dim() else shown


def _pairs(outcomes: Sequence[tuple[Outcome, Outcome]], i: int, tolerance: float) -> list[Pair]:
    """Return what came and was wanted as output i, in all cases in which it is wrong."""
    pairs = []
    for given, right in outcomes:
        ours, theirs = as_outputs(given.outputs), as_outputs(right.outputs)
        if given.error is None and right.error is None and len(ours) == len(theirs):
            came, wanted = as_tensor(ours[i]), as_tensor(theirs[i])
            if (
                came is not None
                and wanted is not None
                and not same_numbers(came, wanted, tolerance)
            ):
                pairs.append((came, wanted))
    return pairs


def _count(ours: Sequence[Any], theirs: Sequence[Any], names: Sequence[str], near: float) -> str:
    """Return that the number of results is wrong, and which of them is the one that was wanted."""
    wanted = f"{len(theirs)} result{'s were' if len(theirs) > 1 else ' was'} wanted"
    hint = f"{wanted} ({', '.join(names)}), but {len(ours)} came."
    if len(theirs) == 1:
        right = [i for i, result in enumerate(ours) if same_numbers(result, theirs[0], near)]
        if right:
            return f"{hint} Number {right[0] + 1} of them is right: return it alone."
        return f"{hint} A list counts as several; make it one tensor."
    found = [
        name
        for name, b in zip(names, theirs, strict=True)
        if any(same_numbers(a, b, near) for a in ours)
    ]
    return f"{hint} Right so far: {', '.join(found)}." if found else hint


def _difference(
    case: Sequence[Any],
    outcomes: Sequence[tuple[Outcome, Outcome]],
    names: Sequence[str],
    tolerance: float,
    *,
    guess: bool,
) -> str:
    """Return how the output that tells most differs; with `guess`, in which relation it stands."""
    ours, theirs = (as_outputs(outcome.outputs) for outcome in outcomes[0])
    if len(ours) != len(theirs):
        return _count(ours, theirs, names, tolerance)
    for order in permutations(range(len(theirs))):
        mixed = [ours[i] for i in order]
        if all(same_numbers(a, b, tolerance) for a, b in zip(mixed, theirs, strict=True)):
            return f"The results are right, but in another order than {', '.join(names)}."
    pairs = {
        i: _pairs(outcomes, i, tolerance)
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True))
        if not same_numbers(one, other, tolerance)
    }
    if not pairs:
        raise ValueError("no difference: the outcomes agree")
    why = {i: relation(found, tolerance) if guess else "" for i, found in pairs.items()}
    i = next((i for i in why if why[i]), next(iter(why)))  # the output that tells most
    return _of_an_output(names[i], ours[i], theirs[i], case, pairs[i], why[i])


def _of_an_output(
    name: str, given: Any, right: Any, case: Sequence[Any], pairs: Sequence[Pair], why: str
) -> str:
    """Return how an output differs from the right one; pairs are both, in each wrong case."""
    title, called = name[0].upper() + name[1:], f"when called with {describe(case)}."
    came, wanted = as_tensor(given), as_tensor(right)
    if came is None and isinstance(given, list):
        return f"{title} should be numbers, {called[:-1]}: {shortened(given)} came."
    is_number = wanted is not None and wanted.dim() == 0
    if came is None or wanted is None or (is_number and came.numel() > 1):
        kind = (
            "True or False" if isinstance(right, bool) else "a number" if is_number else "numbers"
        )
        found = f"a {type(given).__name__}" if came is None else describe([given])
        return f"{title} should be {kind}, not {found}."
    dtype = torch.as_tensor(right).dtype
    if dtype == torch.bool:
        if torch.as_tensor(given).dtype != torch.bool:
            said = all(torch.equal(ours != 0, theirs != 0) for ours, theirs in pairs)
            cure = " They are 0 only where False was wanted: use != 0." if said else ""
            return f"{title} should hold True and False, and yours holds numbers, {called}{cure}"
        if wanted.dim() and came.shape == wanted.shape:
            for way, truth in (("seldom", True), ("often", False)):
                if all((theirs == truth)[ours == truth].all() for ours, theirs in pairs):
                    return f"{title} says True too {way}: where it says {truth}, it is right."
    is_short = wanted.dim() < 2 and max(wanted.numel(), came.numel()) <= FEW
    if is_short and not dtype.is_floating_point:
        return f"{title} should be {_in_brief(wanted)}, not {_in_brief(came)}, {called}{why}"
    if came.shape != wanted.shape:
        shapes = f"{list(wanted.shape)}, not {list(came.shape)}"
        sizes = sorted({*wanted.shape} ^ {*came.shape})
        return f"{title} should have shape {shapes}, {called}{why}{read_aloud(sizes, case)}"
    if came.isnan().any() and not wanted.isnan().any():
        return (
            f"Something in {name} isn't a number: it holds nan {called} Was 0 divided by 0, or "
            "infinity by infinity?"
        )
    if came.isinf().any() and not wanted.isinf().any():
        return f"Something in {name} is infinite {called}"
    gap = (came - wanted).abs().max().item()
    if is_number:
        return f"{title} is off by {gap:.2g} {called}{why}"
    off = f"the numbers of {name} are off by up to {gap:.2g} {called}{why}"
    return f"The shape is right, but {off}"
