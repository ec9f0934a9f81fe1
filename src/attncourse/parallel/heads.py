"""The heads of attention, and the neurons of feed-forward networks, over several processes."""

from typing import TypeVar

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

from attncourse.parallel._checks import require_mesh, require_splittable
from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward

Module = TypeVar("Module", bound=nn.Module)

# "Colwise" splits what a layer puts out: the columns of W in x @ W, a head being d_k neighbors.
# "Rowwise" splits what it takes in, so that each process has a part of every sum.
ATTENTION: dict[str, ParallelStyle] = {
    "W_q": ColwiseParallel(),
    "W_k": ColwiseParallel(),
    "W_v": ColwiseParallel(),
    "W_o": RowwiseParallel(),
}
FEED_FORWARD: dict[str, ParallelStyle] = {"W_1": ColwiseParallel(), "W_2": RowwiseParallel()}

# All three projections read one x. Told so, PyTorch sums their gradients of x before it exchanges
# them: once in place of three times.
ONE_INPUT = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate())


def split_heads_over(module: Module, mesh: DeviceMesh) -> Module:
    """Leave to each process its share of the heads and of the feed-forward networks' neurons.

    PyTorch's `parallelize_module` cuts W_q, W_k, W_v and W_1 by what they put out, W_o and W_2 by
    what they take in (Shoeybi et al. 2019, section 3). Each process then holds h / n heads of every
    layer, the norms, embeddings and readouts whole, and computes the same output as before. The
    forward pass exchanges one sum per attention and one per feed-forward network, and so does the
    backward pass.

    What is said of heads is from then on said of the process's own ones: `num_heads` and
    `num_kv_heads`, `head_mask`, weights, masks and score_bias of 4 dimensions. Not of use any more
    are `contributions`, of which each would hold a head of every process, and a model's `spec`.
    Every process must call the module as often as the others do, with the same tokens.

    Args:
        module: a `MultiHeadAttention`, called with one sequence; or whatever has such inside, as
            blocks and models have. It is changed in place. In all processes it must hold the same
            weights, as from one seed. Feed-forward networks that aren't a `FeedForward` stay whole.
        mesh: the processes, in one dimension, such as init_device_mesh("cpu", (2,)).

    Returns:
        The module.

    Raises:
        TypeError: another mesh, no module, or layers in it that aren't plain `nn.Linear`.
        ValueError: heads, heads of keys and values, or neurons that can't be dealt out evenly;
            dropout, which each process would draw for itself; a module without attention, or split
            already; or processes that hold different weights. Nothing is changed then.
    """
    require_mesh(mesh)
    processes = mesh.size()
    require_splittable(module, processes)
    _require_same_weights(module, mesh)
    for part in [*module.modules()]:
        if isinstance(part, MultiHeadAttention):
            parallelize_module(part, mesh, ATTENTION)
            parallelize_module(part, mesh, ONE_INPUT)
            part.num_heads //= processes
            part.num_kv_heads //= processes
        elif isinstance(part, FeedForward):
            parallelize_module(part, mesh, FEED_FORWARD)
    return module


def own_numbers(module: nn.Module) -> int:
    """Return how many parameters this process holds."""
    return sum(
        parameter.to_local().numel() if isinstance(parameter, DTensor) else parameter.numel()
        for parameter in module.parameters()
    )


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor with the parts of all processes; a tensor that isn't split as it is."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _require_same_weights(module: nn.Module, mesh: DeviceMesh) -> None:
    """Raise unless all processes hold the same weights, as far as their sums tell."""
    own = [parameter.detach().double().sum().item() for parameter in module.parameters()]
    sums: list[list[float]] = [[]] * mesh.size()
    dist.all_gather_object(sums, own, group=mesh.get_group())
    if any(others != own for others in sums):
        raise ValueError(
            "module must hold the same weights in all processes, got different ones: call "
            "torch.manual_seed with one seed before it is made"
        )
