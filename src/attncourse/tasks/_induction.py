"""Induction: what came after this last time comes again."""

from collections.abc import Sequence

from attncourse.tasks._lookup import LETTERS, require_symbols
from attncourse.tasks._tasks import Relation, Sentence, Task
from attnlib.checks import checked_list, require_number, require_positive_int
from attnlib.rng import Sfc32

START = "<start>"


class Induction(Task):
    """Sequences in which chunks come again; `induction` says what its attributes are."""

    name = "induction"
    causal = True

    def __init__(self, symbols: int, length: int, chunks: Sequence[int], filler: float) -> None:
        chunks = checked_list("chunks", chunks)
        for size in chunks:
            require_positive_int("chunks", size)
        if not chunks or min(chunks) < 2:
            raise ValueError(f"chunks must hold sizes of at least 2, got {chunks}")
        require_symbols("symbols", symbols, least=sum(chunks) + 1)  # one for filling, at least
        require_positive_int("length", length)
        require_number("filler", filler)
        if not 0 <= filler < 1:
            raise ValueError(f"filler must be at least 0 and below 1, got {filler}")
        self.symbols, self.length = symbols, length
        self.chunks, self.filler = tuple(chunks), filler
        self.vocabulary = (*LETTERS[:symbols], START)
        self.readouts = {"next": tuple(LETTERS[:symbols])}
        self.relations = (Relation("induction", "next"),)

    def draw(self, rng: Sfc32) -> Sentence:
        symbols = rng.shuffled(range(self.symbols))
        chunks = []
        for size in self.chunks:
            chunks.append(symbols[:size])
            symbols = symbols[size:]
        ids, partners = [self.symbols], {}
        seen: dict[int, int] = {}  # a chunk's first symbol -> where it last stood
        while len(ids) < self.length:
            if rng.bernoulli(self.filler):
                ids.append(rng.choice(symbols))
                continue
            chunk, start = rng.choice(chunks), len(ids)
            if chunk[0] in seen:
                for step in range(len(chunk) - 1):
                    partners[start + step] = seen[chunk[0]] + step + 1
            seen[chunk[0]] = start
            ids += chunk
        ids = ids[: self.length]
        return Sentence(
            words=tuple(self.vocabulary[i] for i in ids),
            ids=tuple(ids),
            answers={"next": (*ids[1:], None)},
            partners={
                "induction": {i: place for i, place in partners.items() if i < self.length - 1}
            },
        )


def induction(
    symbols: int = 48,
    length: int = 40,
    chunks: Sequence[int] = (2, 2, 3, 4),
    filler: float = 0.2,
) -> Induction:
    """Return a causal task whose sequences can be foretold where they repeat themselves.

    Each sequence has chunks of its own, drawn without a symbol in common, which come again and
    again in random order, with stray symbols in between. Every row must tell the next symbol. In
    the relation "induction" are the rows that can: they stand within a chunk that came before, and
    their partner is what followed this symbol then (Olsson et al. 2022). Were a whole sequence
    repeated in one piece, looking a fixed number of places back would do.

    Args:
        symbols: how many symbols there are, at most 52; the chunks leave some for filling.
        length: how many words a sequence has, the start among them.
        chunks: how many symbols each chunk has.
        filler: how likely a stray symbol comes next, where no chunk goes on.

    Raises:
        TypeError, ValueError: a size is no such number, or the chunks need more symbols.
    """
    return Induction(symbols, length, chunks, filler)
