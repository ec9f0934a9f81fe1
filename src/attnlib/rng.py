"""Random numbers that Python and a browser share, bit for bit.

A browser doesn't have torch's generator. So both sides draw what must be alike, such as the
sentences of a language, from this one; attncourse's `widgets/engine/rng.js` is its twin. It is
sfc32 (Chris Doty-Humphrey's "small fast counting" generator, from his PractRand), whose period is
at least 2^32. Every draw uses only operations that neither language rounds. Seeds are checked, the
arguments of draws aren't, for speed.
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
        stream: another such number, so that one seed serves several independent purposes.

    Raises:
        TypeError, ValueError: `seed` or `stream` is no such number.
    """

    def __init__(self, seed: int, stream: int = 0) -> None:
        for name, value in (("seed", seed), ("stream", stream)):
            _require_word(name, value)
        self._a, self._b, self._c, self._counter = 0, int(seed), int(stream), 1
        for _ in range(12):  # until each bit of the seed has reached all others
            self.uint32()

    def uint32(self) -> int:
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
        return self.uint32() / WORD

    def normal(self) -> float:
        """Draw a nearly normal number of mean 0 and variance 1: twelve uniform ones, less 6.

        The sum is exact; a logarithm and a cosine wouldn't be.
        """
        return sum(self.uint32() for _ in range(12)) / WORD - 6

    def randbelow(self, number: int) -> int:
        """Draw a whole number from 0 to `number` - 1, for `number` up to 2^20.

        The bias is less than `number` / 2^32.
        """
        return self.uint32() * number // WORD

    def bernoulli(self, probability: float) -> bool:
        """Draw True with this probability."""
        return self.uint32() / WORD < probability

    def choice(self, items: Sequence[Item]) -> Item:
        """Draw one of the items, each equally likely."""
        return items[self.uint32() * len(items) // WORD]  # `randbelow` without a call, for speed

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in a random order, each equally likely (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.randbelow(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def _require_word(name: str, value: int) -> None:
    require_count(name, value)
    if value >= WORD:
        raise ValueError(f"{name} must be below 2^32 = {WORD}, got {value}")
