"""What processes send each other: how often, and how many bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NAMES = {"allreduce": "all-reduce", "all_reduce": "all-reduce"}  # PyTorch calls one thing two names


@dataclass(frozen=True)
class Sent:
    """What one process put into collectives.

    Attributes:
        counts: how many of each kind, by its name.
        nbytes: how many bytes of tensors. What travels over the wires for them depends on how the
            backend does it.
    """

    counts: Mapping[str, int]
    nbytes: int

    def __str__(self) -> str:
        kinds = [f"{number} {kind}{'s' * (number > 1)}" for kind, number in self.counts.items()]
        return f"{' and '.join(kinds) or 'nothing'}, {self.nbytes:,} bytes"


class Traffic(CommDebugMode):
    """PyTorch's `CommDebugMode`, which counts collectives, and their bytes beside it.

    Example:
        >>> from attncourse.parallel import Traffic
        >>> with Traffic() as traffic:
        ...     pass  # what is asked of a model that is split
        >>> print(traffic.sent)
        nothing, 0 bytes
    """

    def __init__(self) -> None:
        super().__init__()
        self._nbytes = 0
        # They are counted for all modules together. PyTorch's hooks, which tell modules apart, fail
        # where one is called twice in a pass, as rotary positions are.
        modules = self.advanced_module_tracker
        modules.module_parents_dict[modules.name] = set()

    def __enter__(self) -> "Traffic":
        TorchDispatchMode.__enter__(self)
        return self

    def __exit__(self, *error: Any) -> None:
        TorchDispatchMode.__exit__(self, *error)

    @property
    def sent(self) -> Sent:
        """What this process has put into collectives."""
        counts: dict[str, int] = {}
        for operation, number in self.get_comm_counts().items():
            name = str(operation).rpartition(".")[2].rstrip("_")
            name = NAMES.get(name, name)
            counts[name] = counts.get(name, 0) + number
        return Sent(counts, self._nbytes)

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        before = self.get_total_counts()
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if self.get_total_counts() > before:  # it was a collective, and tensors come first
            self._nbytes += sum(x.nbytes for x in tree_leaves(args[0]) if isinstance(x, Tensor))
        return result
