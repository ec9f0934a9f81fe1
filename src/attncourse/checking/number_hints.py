"""What can be said of wrong numbers without knowing how they came about.

Numbers that a reader worked out may stand in a plain relation to the right ones: twice as much, in
percent, with the other sign, another row's. Such a remark goes before the hint on a row. The page
makes the same remarks (`widgets/answer/remarks.js`), and a test holds both equal. The words of both
stand in number_hints.json.
"""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from attncourse.checking.numbers import in_shape_of
from attncourse.checking.on_page import NEAR, Numbers

SAID = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

EXACT = 5e-4  # part by which two numbers may differ in a relation: readers round
TINY = 4  # whole numbers below are in too many relations by chance

TIMES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 32, 64)
UNITS = tuple(base**power for power in (1, 2, 3) for base in (1000, 1024))

Row = Sequence[float]


def remark_on(answer: Any, page: Numbers) -> str:
    """Return the remark on the first row of an answer that is wrong, and not only nearly right."""
    wanted, parts = torch.as_tensor(page.right), page.parts()
    given = in_shape_of(wanted, answer)
    if given is None or given.shape != wanted.shape or not given.isfinite().all():
        return ""
    ours, right = given.flatten().tolist(), wanted.flatten().tolist()
    ends = accumulate(len(labels) for _, labels in parts)
    places = [slice(end - len(labels), end) for (_, labels), end in zip(parts, ends, strict=True)]
    rows = {title: right[place] for (title, _), place in zip(parts, places, strict=True)}
    for (title, row), place in zip(rows.items(), places, strict=True):
        off = max(abs(a - b) for a, b in zip(ours[place], row, strict=True))
        if not off <= NEAR * page.tolerance:
            others = {named: other for named, other in rows.items() if named != title}
            said = remark(ours[place], row, others)
            is_named = said and title and len(row) > 1  # of one number the hint says which it is
            return SAID["named"].format(title=title, remark=said) if is_named else said
    return ""


def remark(ours: Row, right: Row, others: Mapping[str, Row]) -> str:
    """Return in which relation wrong numbers stand to the right ones; nothing where there is none.

    Args:
        ours: a row of numbers that is wrong, and by no usual mistake.
        right: the row that was wanted.
        others: the other rows that are wanted, by title.
    """
    for title, row in others.items():
        if title and any(map(_tells, row)) and _fits(ours, row):
            return SAID["row"].format(title=title)
    if _fits(sorted(ours), sorted(right)) and not _fits(ours, right):
        return SAID["order"]
    if _fits([*map(abs, ours)], [*map(abs, right)]) and not _fits(ours, right):
        return SAID["sign"]
    if any(_is_rounded(ours, right, 10**digits) for digits in (1, 2)):
        return SAID["rounded"]
    if len(right) > 1 and min(right) >= 0 and abs(sum(right) - 1) < EXACT:
        if abs(sum(ours) - 100) < 1:
            return SAID["hundred"]
        if abs(sum(ours) - 1) > 100 * EXACT:
            return SAID["shares"]
    wrong = [pair for pair in enumerate(zip(ours, right, strict=True)) if not _fits(*zip(pair[1]))]
    if len(wrong) == 1 and len(right) > 1:
        place, (a, b) = wrong[0]
        return f"{SAID['single'].format(number=place + 1)} {remark([a], [b], {})}".strip()
    ratios = [a / b for a, b in zip(ours, right, strict=True) if b]
    same = SAID["factor"]
    if (
        len(ratios) < 2
        or not ratios[0]
        or not _fits(ours, [ratios[0] * b for b in right])
        or _fits(ours, right)
    ):
        same = ""
    if not all(_tells(number) or (number == 0 and len(right) > 1) for number in (*ours, *right)):
        return same
    if len(right) == 1 and _fits(ours, [1 / right[0]]):
        return SAID["divided"]
    if all(0 < number < 1 for number in right) and _fits(ours, [1 - number for number in right]):
        return SAID["minus"]
    is_share = len(right) == 1 and abs(right[0]) < 1  # its small multiples are frequent
    for times in (*(() if is_share else TIMES), 100, *UNITS):
        if _fits(ours, [times * number for number in right]):
            percent = times == 100 and max(map(abs, right)) <= 1
            cause = SAID["percent"] if percent else _cause(times, "often")
            return SAID["large"].format(times=f"{times:,}", cause=cause)
        if _fits(ours, [number / times for number in right]):
            return SAID["small"].format(times=f"{times:,}", cause=_cause(times, "out"))
    for power in (1, 2, 3):
        off = 1.024**power
        if any(_fits(ours, [number * way for number in right]) for way in (off, 1 / off)):
            return SAID["kib"]
    if all(n == round(n) for row in (ours, right, *others.values()) for n in row):
        # counts: where numbers are not whole, a difference of 1 is chance
        for step, way in ((1, "large"), (-1, "small")):
            if _fits(ours, [number + step for number in right]):
                return SAID["one"].format(way=way)
    return same


def _cause(times: int, slip: str) -> str:
    return SAID["unit" if times in UNITS else slip]


def _is_rounded(ours: Row, right: Row, parts: int) -> bool:
    return any(
        round(a * parts) and b != round(b) for a, b in zip(ours, right, strict=True)
    ) and all(
        math.isclose(a * parts, round(a * parts), abs_tol=1e-6) and abs(a - b) * parts < 0.5001
        for a, b in zip(ours, right, strict=True)
    )


def _tells(number: float) -> bool:
    """Return whether a relation of this number is hardly one by chance."""
    return number != round(number) or abs(number) >= TINY


def _fits(ours: Row, row: Row) -> bool:
    return len(ours) == len(row) and all(
        a == b
        if b == 0 or max(abs(a - round(a)), abs(b - round(b))) == 0
        else math.isclose(a, b, rel_tol=EXACT)
        for a, b in zip(ours, row, strict=True)
    )
