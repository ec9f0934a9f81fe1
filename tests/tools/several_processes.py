"""What tests have several processes do; each must be able to import it."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from attncourse.parallel import data_parallel, split_heads_over, tensor_parallel, together
from attncourse.parallel.heads import own_numbers
from attncourse.parallel.tensor_parallel import compare_here
from attncourse.tasks import names, pack
from attncourse.training import RECIPES, answer_loss
from attnlib import KVCache, MultiHeadAttention
from attnlib.model import GPT, TransformerModel

EVER = 600.0  # seconds: far longer than any test waits


def mesh():
    """Return all processes."""
    return init_device_mesh("cpu", (dist.get_world_size(),))


def compare_several(cases):
    """Return the comparison of a model of each case."""
    batch = pack(names.sentences(5, seed=0))
    reports = {}
    for name, options in cases.items():
        torch.manual_seed(0)
        reports[name] = compare_here(TransformerModel.of_sizes(names, **options), batch)
    return batch.tokens.numel(), reports


def compare_a_spoiled_one():
    """Return the comparison of a model of which the last process has spoiled one weight."""
    last = dist.get_rank() == dist.get_world_size() - 1

    def spoiled(model, devices):
        split = split_heads_over(model, devices)
        with torch.no_grad():
            split.blocks[0].attention.W_o.weight.to_local()[0, 0] += 0.01 * last
        return split

    tensor_parallel.split_heads_over = spoiled
    return compare_several({"spoiled": RECIPES["names"].model})[1]["spoiled"]


def own_heads_of_an_attention():
    """Return how far what is said per head is from the same heads of the whole attention."""
    torch.manual_seed(0)
    whole = MultiHeadAttention(16, 4, num_kv_heads=2).eval()
    x = torch.randn(2, 5, 16)
    factors = torch.rand(4)
    own = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
    with torch.no_grad():
        expected, weights = whole(x, causal=True, need_weights=True, head_mask=factors)
        numbers = own_numbers(whole)
        split = split_heads_over(whole, mesh())
        found, parts = split(x, causal=True, need_weights=True, head_mask=factors[own])
        cache = KVCache()
        pieces = [
            split(piece, causal=True, cache=cache, head_mask=factors[own])[0]
            for piece in x.split(2, 1)
        ]
    gaps = [found - expected, parts - weights[:, own], torch.cat(pieces, 1) - expected]
    return [gap.abs().max().item() for gap in gaps], repr(split), numbers, own_numbers(split)


def refusals():
    """Return what is said where nothing can be split, and whether the module stayed as it was."""
    torch.manual_seed(0)
    two, one = init_device_mesh("cpu", (2, 1)), mesh()
    split = split_heads_over(MultiHeadAttention(8, 4), one)
    torch.manual_seed(dist.get_rank())
    calls = {
        "two dimensions": (MultiHeadAttention(8, 4), two),
        "split already": (split, one),
        "other weights": (MultiHeadAttention(8, 4), one),
        "too few heads": (GPT(27, 16, 8, 1), one),
    }
    said = {}
    for name, (module, devices) in calls.items():
        before = own_numbers(module), repr(module)
        try:
            split_heads_over(module, devices)
        except ValueError as error:
            said[name] = str(error) if (own_numbers(module), repr(module)) == before else "changed"
    return said


def train_with_plain_means(recipe, seed, steps):
    """Return the comparison of a training in which each process takes the mean of its own loss."""
    data_parallel.share_of_loss = lambda logits, answers, **_: answer_loss(logits, answers)
    return data_parallel._compare_here(recipe, seed, steps)


def train_until_one_is_killed(recipe, seed, steps):
    """Train on, until the last process dies in the middle of a step."""
    take_step = data_parallel.take_step

    def taken(state, *arguments):
        if state.step == 3 and dist.get_rank() == dist.get_world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        take_step(state, *arguments)

    data_parallel.take_step = taken
    return data_parallel._compare_here(recipe, seed, steps)


def start_others(file):
    """Start two processes that stay, and wait for them."""
    together(the_second, 2, "sleep", file)


def rank_and_sum(number):
    """Return this process's rank, and the sum of all their numbers."""
    numbers = torch.tensor([number * (1 + dist.get_rank())])
    dist.all_reduce(numbers)
    return dist.get_rank(), int(numbers), torch.get_num_threads()


def the_second(does, file):
    """Have the second process do something odd, while the others wait for it; note all processes.

    Args:
        does: what it does.
        file: to which each process adds its number.
    """
    with open(file, "a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
    dist.barrier()
    if does == "return a function":
        return lambda: None
    if dist.get_rank() == 1:
        if does == "raise":
            raise ZeroDivisionError("by design")
        if does == "exit":
            os._exit(7)
        if does == "leave":
            sys.exit()
        if does == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(EVER)
    elif does != "sleep while the others are done":
        dist.barrier()
