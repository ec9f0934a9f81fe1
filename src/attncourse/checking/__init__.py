"""What exercises are made of: mistakes with their hints, checks, answers on the page."""

from attncourse.checking.exercises import exercise
from attncourse.checking.functions import (
    check_choice,
    check_choices,
    check_function,
    check_lines,
    check_numbers,
    correct,
    not_a_function,
    not_yet,
)  # fmt: skip
from attncourse.checking.mistakes import Mistake, from_museum, read_mistakes
from attncourse.checking.on_page import Choice, Choices, Lines, Numbers, Order
from attndoctor.support.check_result import CheckResult

__all__ = [
    "CheckResult", "Choice", "Choices", "Lines", "Mistake", "Numbers", "Order", "check_choice",
    "check_choices", "check_function", "check_lines", "check_numbers", "correct", "exercise",
    "from_museum", "not_a_function", "not_yet", "read_mistakes",
]  # fmt: skip
