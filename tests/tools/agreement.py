"""Whether an exercise's page takes for one only what its check takes for one, too."""

import itertools

import torch

from attncourse.checking.on_page import Numbers, Order
from attndoctor.support.check_result import CheckResult


def require_agreement(exercise):
    """Raise ValueError unless an exercise's form fits its check."""
    form, name = exercise.page, exercise.__name__
    for mistake in exercise.mistakes:
        verdict = exercise(mistake.answer)
        if verdict != CheckResult(False, mistake.hint):
            raise ValueError(f"{name}: {mistake.answer!r} must get {mistake.hint!r}, not {verdict}")
    wrong = [mistake.answer for mistake in exercise.mistakes]
    if isinstance(form, Order) and exercise(list(form.steps)):
        raise ValueError("steps must stand in some wrong order: the page begins with it")
    for _, labels in form.parts():
        if form.kind not in ("numbers", "lines") and len(set(labels)) < len(labels):
            raise ValueError(f"labels must differ from each other, got {labels}")
    if isinstance(form, Numbers):
        _require_the_same_for_near_numbers(form, exercise.check, wrong)
    verdicts = [exercise(answer) for answer in form.answers(wrong)]
    if all(verdicts) or not any(verdicts):
        raise ValueError(f"of {len(verdicts)} answers {'all' if any(verdicts) else 'none'} pass")


def _require_the_same_for_near_numbers(form, ask, wrong):  # asks without remarks, as the page
    """Raise ValueError unless tolerances and `rows_apart` are the check's."""
    groups, tolerance, near = form._known(wrong), form.tolerance, form._near
    if form.rows_apart:
        _require_told_apart(groups, 2 * tolerance)
    inside, outside = 0.98 * tolerance, 1.02 * tolerance
    barely, beyond, far = 0.98 * near, 1.02 * near, form.far(wrong)
    first, last = slice(0, 1), slice(-1, None)

    def missed(known):  # a mistake, or any other numbers
        return known[-1] + outside if len(known) > 1 else known[0] + far

    def answers(off, close, other):
        """Return the answers of the table, with known numbers so far off."""
        makers = [close, other] if near > tolerance else [other]
        kinds = [[*(known + off), *(make(known) for make in makers)] for known in groups]
        return [torch.cat(mix).view_as(form._right) for mix in itertools.product(*kinds)]

    table = list(form.answers(wrong))
    verdicts = [ask(answer) for answer in table]
    if not verdicts[0]:
        raise ValueError(f"right must pass the check, which says: {verdicts[0].message}")
    for again in (
        answers(inside, lambda k: k[0] + outside, lambda k: k[0] + beyond),
        answers(-inside, lambda k: k[0] - outside, lambda k: k[0] - beyond),
        answers(0, lambda k: _moved(k[0], barely, first), lambda k: k[0] - 10 * far),
        answers(0, lambda k: _moved(k[0], -barely, last), lambda k: _moved(k[0], far, last)),
        answers(0, lambda k: k[0] + outside, missed),
    ):
        for one, another, verdict in zip(table, again, verdicts, strict=True):
            if ask(another) != verdict:
                raise ValueError(
                    "tolerance, near and rows_apart must be the check's: the page takes "
                    f"{one.tolist()} and {another.tolist()} for the same answer, of which "
                    f"the check says {verdict.message!r} and {ask(another).message!r}"
                )


def _moved(numbers, off, where):
    """Return numbers [n], some of them so far off."""
    numbers = numbers.clone()
    numbers[where] += off
    return numbers


def _require_told_apart(groups, apart):
    """Raise ValueError if numbers could be taken for either of two known rows."""
    for known in groups:
        for one, other in itertools.combinations(known, 2):
            if (one - other).abs().max() <= apart:
                raise ValueError(f"{one.tolist()} and {other.tolist()} are within two tolerances")
