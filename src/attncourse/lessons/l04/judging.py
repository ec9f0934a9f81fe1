"""Which bias is idle, what a mean map shows, and which runs answer a question."""

from collections.abc import Collection, Sequence
from itertools import permutations
from numbers import Real
from typing import Any

from attncourse.checking import CheckResult, Choice, Mistake, exercise, read_mistakes
from attncourse.checking.functions import check_choice, correct, not_yet
from attncourse.checking.numbers import as_list


@exercise(page=Choice({f"b_{name}": f"b_{name}" for name in "qkvo"}))
def idle_bias(answer: object) -> CheckResult:
    """Check which bias changes no output: "b_q", "b_k", "b_v" or "b_o"."""
    praise = (
        "It adds q_i · b_k to every score of row i: the same number all along the row, and a "
        "softmax sees differences only."
    )
    return check_choice(answer, "b_k", idle_bias, praise)


@exercise(
    page=Choice(
        {
            "average": "On average over the sequences, the head gives each of the two places "
            "about half of its attention.",
            "halves": "In each sequence it gives each of the two places about half.",
            "confused": "The model can't tell the two answers apart.",
            "solved": "The model has both answers right.",
        }
    )
)
def mean_map(answer: object) -> CheckResult:
    """Check what follows from a mean map: "average", "halves", "confused" or "solved"."""
    praise = (
        "A mean map shows means only. For more, look at single sequences, or change "
        "something and measure."
    )
    return check_choice(answer, "average", mean_map, praise)


_FEWEST_SEEDS = 3
_NAMES = "heads", "symbols", "steps"
_HALVED = {(1, 16, 400), (1, 8, 400)}
_SEEDS = range(_FEWEST_SEEDS)


def _runs(*settings: tuple[int, int, int], seeds: Collection[int] = _SEEDS) -> list[Any]:
    return [(*setting, seed) for setting in settings for seed in seeds]


def _too_many_changes(names: Sequence[str]) -> str:
    return (
        f"{' and '.join(names).capitalize()} differ between your settings: whatever you find, you "
        "won't know which of them did it."
    )


@exercise(
    mistakes=(
        Mistake(_runs((1, 16, 400), (1, 8, 800)), _too_many_changes(["symbols", "steps"])),
        *read_mistakes("comparison", globals()),
    )
)
def comparison(answer: object) -> CheckResult:
    """Check runs (heads, symbols, steps, seed) that tell what fewer symbols do to one head."""
    if answer is None or answer is ...:
        return not_yet("Nothing is filled in so far: replace the ... with your runs.")
    listed = [as_list(run) for run in as_list(answer)]
    runs = {tuple(run) for run in listed if _is_run(run)}
    if not runs or len(runs) < len(listed):
        return not_yet(
            "Give a list of different runs, each of four whole numbers: (heads, symbols, "
            "steps, seed)."
        )
    settings = {run[:3] for run in runs}
    if settings != _HALVED and _stand_in_another_order(runs):
        return not_yet(comparison.hints["another_order"])
    if hint := _wrong_settings(settings):
        return not_yet(hint)
    first, second = ({run[3] for run in runs if run[:3] == setting} for setting in settings)
    if min(len(first), len(second)) < _FEWEST_SEEDS:
        return not_yet(comparison.hints["single_seed"])
    if first != second:
        return not_yet(comparison.hints["other_seeds"])
    return correct("One thing differs, everything else and the seeds are the same.")


def _is_run(run: Sequence[Any]) -> bool:
    return len(run) == 4 and all(
        isinstance(number, Real) and float(number).is_integer() for number in run
    )


def _stand_in_another_order(runs: Collection[tuple[int, ...]]) -> bool:
    return any(
        {(run[i], run[j], run[k]) for run in runs} == _HALVED
        for i, j, k in permutations(range(4), 3)
    )


def _wrong_settings(settings: set[tuple[int, ...]]) -> str:
    """Return what is wrong with the settings (heads, symbols, steps) compared, or nothing."""
    if settings == _HALVED:
        return ""
    if len(settings) == 1:
        return comparison.hints["nothing_to_compare"]
    values = zip(*settings, strict=True)
    changed = [name for name, given in zip(_NAMES, values, strict=True) if len(set(given)) > 1]
    if "symbols" not in changed:
        return comparison.hints[changed[0]]
    if len(changed) > 1:
        return _too_many_changes(changed)
    return "The question needs one head, 400 steps, and 16 symbols against 8: no other runs."
