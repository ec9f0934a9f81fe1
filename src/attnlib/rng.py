"""Random numbers that Python and a browser share, bit for bit.

A page can't have torch's own. So both sides draw what must be alike, such as the sentences of a
language, from this generator; attncourse's `widgets/engine/chance.js` is its twin. It is sfc32
(Chris Doty-Humphrey's "small fast counting" generator of 32-bit numbers, from his PractRand): sums,
shifts and an exclusive or, and a counter that makes every period at least 2^32 long.

Each draw uses only what both languages compute without rounding, so neither a library's logarithm
nor the order of a sum can part them.
"""

from collections.abc import Sequence
from typing import TypeVar

from attnlib.checks import require_count

Item = TypeVar("Item")

WORD = 2**32  # how many values a number of 32 bits has


class Sfc32:
    """A stream of random numbers from a seed.

    Args:
        seed: whole number from 0 to 2^32 - 1.
        stream: another one. From one seed, different streams are drawn for different things.

    Raises:
        TypeError, ValueError: `seed` or `stream` is no such number.
    """

    def __init__(self, seed: int, stream: int = 0) -> None:
        for name, value in (("seed", seed), ("stream", stream)):
            _require_word(name, value)
        self._a, self._b, self._c, self._counter = 0, int(seed), int(stream), 1
        for _ in range(12):  # until each bit of the seed has reached all others
            self.word()

    @classmethod
    def of_state(cls, state: Sequence[int]) -> "Sfc32":
        """Return what goes on drawing where another was in this `state`.

        Raises:
            TypeError, ValueError: not four such numbers.
        """
        if len(state) != 4:
            raise ValueError(f"state must hold 4 numbers, got {len(state)}")
        for value in state:
            _require_word("state", value)
        made = cls(0)
        made._a, made._b, made._c, made._counter = map(int, state)
        return made

    @property
    def state(self) -> tuple[int, int, int, int]:
        """All that decides what is drawn from here on."""
        return self._a, self._b, self._c, self._counter

    def word(self) -> int:
        """Draw a whole number from 0 to 2^32 - 1."""
        a, b, c = self._a, self._b, self._c
        drawn = (a + b + self._counter) % WORD
        self._counter = (self._counter + 1) % WORD
        self._a = b ^ (b >> 9)
        self._b = (c + (c << 3)) % WORD
        self._c = ((c << 21 | c >> 11) + drawn) % WORD
        return drawn

    def uniform(self) -> float:
        """Draw a number from 0 up to, not including, 1: one of 2^32 equal steps."""
        return self.word() / WORD

    def normal(self) -> float:
        """Draw a nearly normal number of mean 0 and variance 1: twelve uniform ones, less 6.

        It lies between -6 and 6. The sum is exact, as a logarithm and a cosine wouldn't be.
        """
        return sum(self.word() for _ in range(12)) / WORD - 6

    def below(self, number: int) -> int:
        """Draw a whole number from 0 to `number` - 1, where `number` is at most 2^20.

        Biased by less than `number` / 2^32.
        """
        return self.word() * number // WORD

    def happens(self, probability: float) -> bool:
        """Draw whether something of this probability happens."""
        return self.word() / WORD < probability

    def choice(self, items: Sequence[Item]) -> Item:
        """Draw one of some things, each equally likely."""
        return items[self.word() * len(items) // WORD]  # as `below`, a call less of many thousands

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return some things in a random order, each equally likely (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def _require_word(name: str, value: int) -> None:
    """Raise unless a value is a whole number of 32 bits."""
    require_count(name, value)
    if value >= WORD:
        raise ValueError(f"{name} must be below 2^32 = {WORD}, got {value}")
