"""What remembering keys and values costs while tokens come one by one.

    python benchmarks/cache.py              # about three minutes on two cores
    python benchmarks/cache.py --device cuda

Three caches: attnlib's KVCache, one that joins old and new with `torch.cat` at every step, and one
whose memory was set aside for all tokens beforehand, which is the floor. d = 512, h = 8 (d_k = 64),
B = 1, float32 (bfloat16 on a GPU), no gradients, one thread.

Copied: how often each remembered number is written, counted. The cache alone: time of taking all
tokens in. Generating: time of a MultiHeadAttention that attends from each token to all before it.
Times are ratios to the floor, all caches taking turns in one process.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from measuring import Goal, clock_of, ratios, save, show, show_goals, take_turns
from torch import Tensor, nn

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the tools that tests share

from tools.copying import CopiedNumbers

from attnlib import KVCache, MultiHeadAttention

D_MODEL, HEADS = 512, 8
LENGTHS = {256: 15, 1024: 9, 4096: 5}  # tokens: rounds
Caches = dict[str, Callable[[], KVCache]]


class JoiningCache(KVCache):
    """Copies its past at every step."""

    def joined(self, owner: nn.Module, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.keys is None or self.values is None:
            return keys, values
        return torch.cat([self.keys, keys], -2), torch.cat([self.values, values], -2)


class PreallocatedCache(KVCache):
    """Has room for all tokens from the start."""

    def __init__(self, tokens: int, like: Tensor) -> None:
        super().__init__()
        shape = (1, HEADS, tokens, D_MODEL // HEADS)
        self.memory = [like.new_empty(shape), like.new_empty(shape)]

    def joined(self, owner: nn.Module, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        past, stop = len(self), len(self) + keys.shape[-2]
        for memory, new in zip(self.memory, (keys, values), strict=True):
            memory[..., past:stop, :] = new
        keys, values = (memory[..., :stop, :] for memory in self.memory)
        return keys, values


def caches(tokens: int, like: Tensor) -> Caches:
    """Return what makes each cache, named as in the tables."""
    return {
        "set aside beforehand": lambda: PreallocatedCache(tokens, like),
        "attnlib's KVCache": KVCache,
        "torch.cat at every step": JoiningCache,
    }


def take_in(make: Callable[[], KVCache], keys: Tensor) -> None:
    """Let a new cache remember keys [1, h, T, d_k], and the same as values, one by one."""
    owner, cache = nn.Identity(), make()
    for one in keys.split(1, -2):
        cache.keep(owner, *cache.joined(owner, one, one))


def generate(module: MultiHeadAttention, make: Callable[[], KVCache], x: Tensor) -> None:
    """Attend from each token of x [1, T, d] to itself and all before it."""
    cache = make()
    for token in x.split(1, 1):
        module(token, causal=True, cache=cache)


def copies(make: Callable[[], KVCache], keys: Tensor) -> float:
    """Return how often each remembered number is written."""
    with CopiedNumbers() as copied:
        take_in(make, keys)
    return copied.count / (2 * keys.numel())


@torch.no_grad()
def measure(device: str, share: float) -> dict[str, dict[str, dict]]:
    """Return {what: {tokens: {cache: number or Summary}}}."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    options = {"device": device, "dtype": dtype}
    clock = clock_of(device, 1)
    module = MultiHeadAttention(D_MODEL, HEADS, **options)
    found: dict[str, dict[str, dict]] = {"copied": {}, "the cache alone": {}, "generating": {}}
    for tokens, rounds in LENGTHS.items():
        rounds = max(3, int(rounds * share))
        keys = torch.randn(1, HEADS, tokens, D_MODEL // HEADS, **options)
        x = torch.randn(1, tokens, D_MODEL, **options)
        made = caches(tokens, keys)
        alone = {name: partial(take_in, make, keys) for name, make in made.items()}
        whole = {name: partial(generate, module, make, x) for name, make in made.items()}
        label, floor = f"T = {tokens}", next(iter(made))
        found["copied"][label] = {name: copies(make, keys) for name, make in made.items()}
        found["the cache alone"][label] = ratios(take_turns(alone, rounds, clock), floor)
        found["generating"][label] = ratios(take_turns(whole, rounds, clock), floor)
    return found


def show_all(found: dict[str, dict[str, dict]]) -> None:
    titles = {
        "copied": "How often each remembered number is written",
        "the cache alone": "Taking all tokens in, as multiples of the floor",
        "generating": "Attending from each token to all before it, as multiples of the floor",
    }
    for what, columns in found.items():
        names = next(iter(columns.values()))
        rows = [[name, *(_text(column[name]) for column in columns.values())] for name in names]
        show(titles[what], ["", *columns], rows)


def _text(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def goals(found: dict[str, dict[str, dict]]) -> list[Goal]:
    """Compare with what was aimed at."""
    ours = "attnlib's KVCache"
    wanted = [
        Goal(f"copies, {label}", column[ours], 4.0) for label, column in found["copied"].items()
    ]
    longest = f"T = {max(LENGTHS)}"
    time = found["generating"][longest][ours].median
    return [*wanted, Goal(f"generating, {longest}: to the floor", time, 1.15)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=float, default=1.0, help="times as many rounds")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a GPU that torch can use")
    found = measure(arguments.device, arguments.rounds)
    show_all(found)
    reached = goals(found)
    show_goals(reached)
    if arguments.rounds == 1:
        save("cache", arguments.device, found, reached)


if __name__ == "__main__":
    main()
