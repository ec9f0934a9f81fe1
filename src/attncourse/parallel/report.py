"""What a comparison with a single process finds, and how it is printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Share:
    """What one process has of the work, and how far its results are off."""

    heads: int  # of each layer
    parameters: int  # how many numbers of the model it holds
    gap: float  # the largest difference from what a single process finds; NaN where there is one

    @classmethod
    def of(
        cls, model: nn.Module, heads: int, results: Sequence[tuple[Tensor, Tensor]] = ()
    ) -> "Share":
        """Return a share of a model, and how far its results are from those beside them."""
        own = (x.to_local() if isinstance(x, DTensor) else x for x in model.parameters())
        gaps = [(one - other).detach().abs().max() for one, other in results]
        gap = torch.stack(gaps).max().item() if gaps else 0.0
        return cls(heads, sum(x.numel() for x in own), gap)

    def from_all(self) -> "list[Share]":
        """Return the shares of all processes; each must call this."""
        shares = [self] * dist.get_world_size()
        dist.all_gather_object(shares, self)
        return shares


@dataclass(frozen=True)
class Report:
    """What several processes found, beside a single one."""

    alone: Share  # what a single process has
    shares: list[Share]  # what each of several has
    all_reduces: Mapping[str, int]  # how often the processes summed something, by when
    tolerance: float  # how far results may be apart

    @property
    def equal(self) -> bool:
        """Whether all results are those of one process, up to rounding."""
        return all(share.gap <= self.tolerance for share in self.shares)  # NaN isn't

    def __str__(self) -> str:
        lines = ["process      heads  parameters  outputs, gradients off by"]
        lines.append(f"  alone  {self.alone.heads:9}  {self.alone.parameters:10,}")
        for rank, share in enumerate(self.shares):
            lines.append(f"{rank:7}  {share.heads:9}  {share.parameters:10,}  {share.gap:.1e}")
        counts = ", ".join(f"{number} {when}" for when, number in self.all_reduces.items())
        verdict = "Equal up to" if self.equal else "DIFFERENT by more than"
        return "\n".join([*lines, f"all-reduces: {counts}", f"{verdict} {self.tolerance:g}."])


class AllReduces(TorchDispatchMode):
    """Counts the all-reduces of what runs inside."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if DTensor in types:
            return NotImplemented  # it becomes calls on the process's own parts, and all-reduces
        self.count += "allreduce" in func.name().replace("_", "")
        return func(*args, **kwargs or {})
