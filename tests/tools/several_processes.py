"""What tests have several processes do; each must be able to import it."""

import os
import signal

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from attncourse.parallel import split_heads_over, tensor_parallel
from attncourse.tasks import names, pack
from attncourse.training import RECIPES
from attnlib import KVCache, MultiHeadAttention, TransformerBlock
from attnlib.model import TransformerModel


def mesh(*shape):
    """Return all processes."""
    return init_device_mesh("cpu", shape or (dist.get_world_size(),))


def everything(cases):
    """Return what all the functions below find, by their names: to start processes takes long."""
    found = {work.__name__: work() for work in (own_heads_of_an_attention, refusals)}
    return found | {"cases": compare_several(cases), "spoiled": compare_a_spoiled_one()}


def compare_several(cases):
    """Return the comparison of a model of each case."""
    batch = pack(names.sentences(5, seed=0))
    reports = {}
    for name, options in cases.items():
        torch.manual_seed(0)
        model = TransformerModel.of_sizes(names, **options)
        reports[name] = tensor_parallel.compare_here(model, batch)
    return reports


def compare_a_spoiled_one():
    """Return the comparison of a model in which the last process has spoiled one weight."""

    def spoiled(model, devices):
        split = split_heads_over(model, devices)
        with torch.no_grad():
            split.blocks[0].attention.W_o.weight.to_local()[0, 0] += 0.01 * dist.get_rank()
        return split

    tensor_parallel.split_heads_over = spoiled
    return compare_several({"spoiled": RECIPES["names"].model})["spoiled"]


def own_heads_of_an_attention():
    """Return how far a process's own heads are from the same heads of the whole attention.

    A block beside it has other weights in the second process, where they must not count.
    """
    torch.manual_seed(0)
    whole = MultiHeadAttention(16, 4, num_kv_heads=2).eval()
    block = TransformerBlock(16, 2).eval()
    x = torch.randn(2, 5, 16)
    factors = torch.rand(4)
    own = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
    with torch.no_grad():
        expected, weights = whole(x, causal=True, need_weights=True, head_mask=factors)
        after_block, _ = block(x)
        if dist.get_rank():
            for parameter in block.parameters():
                parameter.zero_()
        split = split_heads_over(whole, mesh())
        found, parts = split(x, causal=True, need_weights=True, head_mask=factors[own])
        cache = KVCache()
        pieces = [
            split(piece, causal=True, cache=cache, head_mask=factors[own])[0]
            for piece in x.split(2, 1)
        ]
        split_block, _ = split_heads_over(block, mesh())(x)
    gaps = [found - expected, parts - weights[:, own], torch.cat(pieces, 1) - expected]
    gaps.append(split_block - after_block)
    return [gap.abs().max().item() for gap in gaps], (split.num_heads, split.num_kv_heads)


def refusals():
    """Return what is said where nothing can be split."""
    said = []
    split = split_heads_over(MultiHeadAttention(8, 4), mesh())
    for module, devices in [(MultiHeadAttention(8, 4), mesh(2, 1)), (split, mesh())]:
        try:
            split_heads_over(module, devices)
        except ValueError as error:
            said.append(str(error))
    return said


def the_second_stops(file):
    """Have each process add its number to a file, and the second stand still."""
    with open(file, "a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
