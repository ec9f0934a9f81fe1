"""What comparisons with a single process find, and how they print it."""

from collections.abc import Sequence
from dataclasses import dataclass

from attncourse.parallel.traffic import Sent


@dataclass(frozen=True)
class ModelShare:
    """What one process holds of a model that is split, and how far its results are off.

    Attributes:
        num_heads: of each layer.
        parameters: how many numbers.
        outputs, gradients: the largest difference from the model in one process.
    """

    num_heads: int
    parameters: int
    outputs: float
    gradients: float


@dataclass(frozen=True)
class ModelReport:
    """A model over several processes beside the same model in one.

    Attributes:
        alone: what one process holds of it.
        shares: what each of several does.
        num_layers: how many blocks it has.
        shape: of the tokens' vectors between blocks, [B, T, d].
        forward, backward: what each process has sent, in all blocks together.
        tolerance: how far results may be apart.
    """

    alone: ModelShare
    shares: list[ModelShare]
    num_layers: int
    shape: tuple[int, int, int]
    forward: Sent
    backward: Sent
    tolerance: float

    @property
    def equal(self) -> bool:
        """Whether all outputs and gradients are those of one process, up to rounding."""
        gaps = [gap for one in self.shares for gap in (one.outputs, one.gradients)]
        return all(gap <= self.tolerance for gap in gaps)  # NaN isn't

    def __str__(self) -> str:
        head = ["process", "heads", "parameters", "outputs differ by", "gradients differ by"]
        rows = [["alone", str(self.alone.num_heads), f"{self.alone.parameters:,}", "", ""]]
        rows += [
            [str(rank), str(one.num_heads), f"{one.parameters:,}", f"{one.outputs:.1e}",
             f"{one.gradients:.1e}"]
            for rank, one in enumerate(self.shares)
        ]  # fmt: skip
        layers = f"{self.num_layers} block{'s' * (self.num_layers > 1)}"
        return "\n".join(
            [
                *aligned([head, *rows]),
                "",
                f"Each process sends, for {layers} and x {[*self.shape]}:",
                f"  forward   {self.forward}",
                f"  backward  {self.backward}",
                "",
                verdict(self.equal, "no output and no gradient", self.tolerance),
            ]
        )


@dataclass(frozen=True)
class TrainingShare:
    """What one process did of a training, and how far it got from that of a single process.

    Attributes:
        sentences: of the last step's batch.
        parameters: how many numbers of the model it holds.
        weights: the largest difference of a weight.
    """

    sentences: int
    parameters: int
    weights: float


@dataclass(frozen=True)
class TrainingReport:
    """A training over several processes beside the same training in one.

    Attributes:
        alone: what one process does.
        shares: what each of several does.
        losses: of all sentences, in the first step and in the last.
        loss: the largest difference of a step's loss.
        steps: how many were taken.
        last_step: what each process has sent in the last one.
        seconds: how long all steps took in one process, and over several.
        tolerance: how far weights and losses may be apart.
    """

    alone: TrainingShare
    shares: list[TrainingShare]
    losses: tuple[float, float]
    loss: float
    steps: int
    last_step: Sent
    seconds: tuple[float, float]
    tolerance: float

    @property
    def equal(self) -> bool:
        """Whether all weights and losses are those of one process, up to rounding."""
        gaps = [self.loss, *(one.weights for one in self.shares)]
        return all(gap <= self.tolerance for gap in gaps)  # NaN isn't

    def __str__(self) -> str:
        head = ["process", "sentences per step", "parameters", "weights differ by"]
        rows = [["alone", str(self.alone.sentences), f"{self.alone.parameters:,}", ""]]
        rows += [
            [str(rank), str(one.sentences), f"{one.parameters:,}", f"{one.weights:.1e}"]
            for rank, one in enumerate(self.shares)
        ]
        first, last = self.losses
        alone, shared = self.seconds
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        return "\n".join(
            [
                *aligned([head, *rows]),
                "",
                f"{steps}: loss {first:.3f} to {last:.3f}, at each step within {self.loss:.1e} of "
                "that of one process",
                f"In the last step each process has sent: {self.last_step}",
                f"Seconds: alone {alone:.1f}, together {shared:.1f}",
                "",
                verdict(self.equal, "no weight and no loss", self.tolerance),
            ]
        )


def verdict(equal: bool, nothing: str, tolerance: float) -> str:
    """Say whether things are equal."""
    if equal:
        return f"Equal: {nothing} is off by more than {tolerance:g}."
    return f"DIFFERENT: more than {tolerance:g} apart."


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines, each column as wide as its widest cell, on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
