"""The heads of attention, and the neurons of feed-forward networks, over several processes."""

from typing import TypeVar

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    parallelize_module,
)

from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, TransformerBlock
from attnlib.checks import divisors_of

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

# All three projections read one x. With this, PyTorch sums their gradients of x before it exchanges
# them: once in place of three times.
ONE_INPUT = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate())


def split_heads_over(module: Module, mesh: DeviceMesh) -> Module:
    """Leave to each process its share of the heads and neurons of a module, which is returned.

    PyTorch's `parallelize_module` cuts W_q, W_k, W_v and W_1 by columns, W_o and W_2 by rows
    (Shoeybi et al. 2019, section 3). Each process then holds h / n heads of every layer, the norms,
    embeddings and readouts whole, and computes the same output as before. The forward pass
    exchanges one sum per attention and one per feed-forward network, and so does the backward pass.

    From then on `num_heads`, `num_kv_heads`, `head_mask` and the returned weights
    [B, h / n, T_q, T_k] are those of the process's own heads. Every process must call the module as
    often as the others do, with the same tokens.

    Args:
        module: a `MultiHeadAttention`, or a block or model that has such inside. It is changed in
            place, and takes the weights of the first process.
        mesh: the processes, in one dimension, such as init_device_mesh("cpu", (2,)).

    Raises:
        TypeError: no mesh, or no module.
        ValueError: a mesh of several dimensions; heads or neurons that can't be dealt out evenly;
            dropout; a module without attention, or split already. Nothing is changed then.
    """
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(
            'mesh must be a DeviceMesh, such as init_device_mesh("cpu", (2,)), got '
            f"{type(mesh).__name__}"
        )
    if mesh.ndim != 1:
        raise ValueError(f"mesh must have one dimension, got {mesh.ndim}")
    processes = mesh.size()
    require_splittable(module, processes)
    for parameter in module.parameters():
        dist.broadcast(parameter.data, group=mesh.get_group(), group_src=0)
    for part in [*module.modules()]:
        if isinstance(part, MultiHeadAttention):
            parallelize_module(part, mesh, ATTENTION)
            parallelize_module(part, mesh, ONE_INPUT)
            part.num_heads //= processes
            part.num_kv_heads //= processes
        elif isinstance(part, FeedForward):
            parallelize_module(part, mesh, FEED_FORWARD)
    return module


def require_splittable(module: nn.Module, processes: int) -> None:
    """Raise unless each process can take an equal share of each layer in a module."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch module, got {type(module).__name__}")
    if not any(isinstance(part, MultiHeadAttention) for part in module.modules()):
        raise ValueError(
            f"module must have an attnlib MultiHeadAttention inside, got {type(module).__name__}"
        )
    if any(isinstance(parameter, DTensor) for parameter in module.parameters()):
        raise ValueError("module must be whole, got one that is split already")
    parted = (MultiHeadAttention, FeedForward)
    for path, part in module.named_modules():
        place = f"{path}." if path else ""
        if isinstance(part, MultiHeadAttention | TransformerBlock) and part.dropout:
            raise ValueError(
                f"{place}dropout must be 0, got {part.dropout}: each process would draw for itself "
                "what is left out"
            )
        for name in ("num_heads", "num_kv_heads", "d_ff"):
            number = getattr(part, name, 0) if isinstance(part, parted) else 0
            if number % processes:
                raise ValueError(
                    f"processes must divide {place}{name}={number}, got {processes}: "
                    f"it may be one of {divisors_of(number)}"
                )
