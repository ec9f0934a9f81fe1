"""ClockHands: positions as the hands of clocks, each slower than the one before."""

import traitlets

from attncourse.widgets._base import CourseWidget, browser_files, summary_trait
from attncourse.widgets._inputs import require_one_of, require_within
from attnlib.checks import require_count, require_flag, require_positive_int

LAST = 63  # the largest position
WIDTHS = (4, 8, 16)  # more clocks than eight aren't looked at one by one


class ClockHands(CourseWidget):
    """Two positions as vectors, a clock for each pair of their numbers, and their dot product.

    The clocks are those of `attnlib.positions`: clock i turns by 1 / 10000^(2i / d) per token,
    clockwise. For sinusoids all hands stand upright at position 0, and a pair of numbers is how far
    a hand points to the right and how far up. For rotary positions a query, (1, 0) in every pair,
    and a key, (0.6, 0.8), are turned; the first number of a pair points up, the second to the
    right. The browser computes all of it. In a notebook::

        clocks = ClockHands(position=5, other=2)
        clocks                                                     # show it
        clocks.observe(lambda change: print(change["new"]), "position")

    Traits that a reader changes:
        position (int): m, from 0 to 63; where the query stands.
        other (int): n, from 0 to 63; where the key stands.
        d (int): how many numbers a vector has: 4, 8 or 16.

    Args:
        position, other, d: at the start.
        rotary: whether a query and a key are turned, or else sinusoids are shown.
    """

    _esm, _css = browser_files("clock_hands")
    summary = summary_trait(
        "Two positions as hands of clocks, each clock slower than the one before, and the dot "
        "product of the two vectors, which depends on their distance alone."
    )

    position = traitlets.Int(3).tag(sync=True)
    other = traitlets.Int(1).tag(sync=True)
    d = traitlets.Int(8).tag(sync=True)
    rotary = traitlets.Bool(False, read_only=True).tag(sync=True)

    def __init__(
        self, position: int = 3, other: int = 1, *, d: int = 8, rotary: bool = False
    ) -> None:
        for name, value in (("position", position), ("other", other)):
            require_count(name, value)
            require_within(name, value, 0, LAST)
        require_positive_int("d", d)
        require_one_of("d", d, WIDTHS)
        require_flag("rotary", rotary)
        super().__init__(position=int(position), other=int(other), d=int(d), rotary=rotary)

    def __repr__(self) -> str:
        kind = "rotary" if self.rotary else "sinusoidal"
        return f"ClockHands({self.position}, {self.other}, d={self.d}, {kind})"
