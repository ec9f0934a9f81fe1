"""What MultiHeadAttention costs, beside a floor and its peers.

    python benchmarks/attention.py                 # everything: about ten minutes on two cores
    python benchmarks/attention.py --only times    # or: memory
    python benchmarks/attention.py --device cuda

Times are ratios to a floor: one packed input projection, PyTorch's fused attention on heads that
lie ready, one output projection. d = 512, h = 8, float32 (bfloat16 on a GPU); without gradients
where it says "forward", with a backward pass where it says "training step". On a processor the
first tables are processor time on one thread, the others time on the wall with two.

Memory is the peak beyond the module and its input, in units of one weights tensor
[1, h, 4096, 4096], each in a fresh process.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from measuring import (
    Goal,
    clock_of,
    in_a_fresh_process,
    peak_bytes,
    ratios,
    save,
    show,
    show_goals,
    take_turns,
)
from torch import Tensor, nn

from attnlib import MultiHeadAttention

D_MODEL, HEADS = 512, 8
SHAPES = {(8, 128): 25, (4, 512): 15, (1, 2048): 11}  # (B, T): rounds
MEMORY_TOKENS = 4096
Run = Callable[[], tuple]  # gives the output and, where they are shown, the weights


class Floor(nn.Module):
    """The least that multi-head attention must do.

    Without gradients its heads lie ready in memory, as no module's do; with them they are views of
    the projection, so that the backward pass reaches it.
    """

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        options = {"device": x.device, "dtype": x.dtype}
        self.W_qkv = nn.Linear(D_MODEL, 3 * D_MODEL, **options)
        self.W_o = nn.Linear(D_MODEL, D_MODEL, **options)
        B, T, _ = x.shape
        self.ready = torch.randn(3, B, HEADS, T, D_MODEL // HEADS, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        projected = self.W_qkv(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(*(projected if x.requires_grad else self.ready))
        return self.W_o(heads.transpose(1, 2).flatten(2)), None


class Explicit(MultiHeadAttention):
    """Scores, divided by sqrt(d_k), softmax, each in a tensor of its own, as tutorials write it."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = (
            projection(x).unflatten(2, (HEADS, -1)).transpose(1, 2)
            for projection in (self.W_q, self.W_k, self.W_v)
        )
        weights = (q @ k.transpose(-2, -1) / (D_MODEL // HEADS) ** 0.5).softmax(-1)
        return self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights


class LoopOverHeads(MultiHeadAttention):
    """One head after the other, the maps stacked at the end."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        outputs, maps = [], []
        d_k = D_MODEL // HEADS
        whole = [projection(x) for projection in (self.W_q, self.W_k, self.W_v)]
        for head in range(HEADS):
            q, k, v = (y[..., head * d_k : (head + 1) * d_k] for y in whole)
            maps.append((q @ k.transpose(-2, -1) / d_k**0.5).softmax(-1))
            outputs.append(maps[-1] @ v)
        return self.W_o(torch.cat(outputs, -1)), torch.stack(maps, 1)


def candidates(x: Tensor) -> dict[str, Run]:
    """Return every candidate for an input, named as in the tables; each gives (output, weights)."""
    options = {"device": x.device, "dtype": x.dtype}
    ours = MultiHeadAttention(D_MODEL, HEADS, **options)
    torchs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, **options)
    floor, explicit = Floor(x), Explicit(D_MODEL, HEADS, **options)
    loop = LoopOverHeads(D_MODEL, HEADS, **options)
    each = {"need_weights": True, "average_attn_weights": False}
    found: dict[str, Run] = {
        "floor": lambda: floor(x),
        "attnlib, train": lambda: ours.train()(x),
        "attnlib, eval": lambda: ours.eval()(x),
        "attnlib, weights": lambda: ours(x, need_weights=True),
        "nn.MHA, train": lambda: torchs.train()(x, x, x, need_weights=False),
        "nn.MHA, eval": lambda: torchs.eval()(x, x, x, need_weights=False),
        "nn.MHA, weights, train": lambda: torchs.train()(x, x, x, **each),
        "nn.MHA, weights, eval": lambda: torchs.eval()(x, x, x, **each),
        "explicit softmax": lambda: explicit(x),
        "loop over heads": lambda: loop(x),
    }
    return found | x_transformers(x)


def x_transformers(x: Tensor) -> dict[str, Run]:
    """Return x-transformers' attention where that is installed; nothing else needs it."""
    try:
        from x_transformers.x_transformers import Attention
    except ImportError:
        return {}
    options = {"dim": D_MODEL, "heads": HEADS, "dim_head": D_MODEL // HEADS}
    flash, shown = (Attention(**options, flash=on).to(x) for on in (True, False))
    return {
        "x-transformers": lambda: (flash(x), None),
        "x-transformers, weights": lambda: shown(x, return_intermediates=True),
    }


def training_step(run: Run) -> Run:
    """Return a call that also takes the gradients of the output, and holds what `run` gave."""

    def step() -> tuple:
        result = run()
        result[0].sum().backward()
        return result

    return step


def measure_times(device: str, threads: int, share: float) -> dict[str, dict[str, dict]]:
    """Return {"forward" or "training step": {shape: {candidate: Summary}}}."""
    torch.set_num_threads(threads)
    clock = clock_of(device, threads)
    found: dict[str, dict[str, dict]] = {"forward": {}, "training step": {}}
    for (B, T), rounds in SHAPES.items():
        rounds, shape = max(5, int(rounds * share)), f"({B}, {T})"
        x = tokens(B, T, device)
        with torch.no_grad():
            found["forward"][shape] = ratios(take_turns(candidates(x), rounds, clock), "floor")
        x.requires_grad_()
        steps = {name: training_step(run) for name, run in candidates(x).items()}
        found["training step"][shape] = ratios(take_turns(steps, rounds, clock), "floor")
    return found


def tokens(B: int, T: int, device: str) -> Tensor:
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return torch.randn(B, T, D_MODEL, device=device, dtype=dtype)


CLOCKS = {1: "processor time, 1 thread", 2: "wall time, 2 threads"}

# What is held in memory, as (candidate, with a backward pass).
HELD = {
    "attnlib, no weights": ("attnlib, train", False),
    "attnlib, one head's weights": ("attnlib, one head's weights", False),
    "attnlib, weights": ("attnlib, weights", False),
    "attnlib, weights, training step": ("attnlib, weights", True),
    "nn.MHA, weights": ("nn.MHA, weights, train", False),
    "nn.MHA, weights, training step": ("nn.MHA, weights, train", True),
}


def print_peak(case: str, device: str) -> None:
    """Measure one case in this process; print its peak in units of one weights tensor."""
    torch.set_num_threads(1)
    name, learning = HELD[case]
    with torch.set_grad_enabled(learning):
        for T in (8, MEMORY_TOKENS):  # the short one first, so that all code is loaded
            x = tokens(1, T, device).requires_grad_(learning)
            run = candidates(x)[name]
            run = training_step(run) if learning else run
            peak = peak_bytes(run, device)
    print(peak / (HEADS * MEMORY_TOKENS**2 * x.element_size()))


def show_times(what: str, found: dict[str, dict]) -> None:
    shapes = list(found)
    names = found[shapes[0]]
    rows = [[name, *(str(found[shape][name]) for shape in shapes)] for name in names]
    show(f"{what}, as multiples of the floor: median (middle half)", ["", *shapes], rows)


def time_goals(found: dict[str, dict[str, dict]], device: str) -> list[Goal]:
    """Compare the median ratios with what was aimed at."""
    goals = []
    for shape, named in found["forward"].items():
        for mode in ("train", "eval"):
            wanted = 1.08 if device == "cuda" else 1.10
            what = f"no weights, {mode}, {shape}: to the floor"
            goals.append(Goal(what, named[f"attnlib, {mode}"].median, wanted))
    last, step = found["forward"]["(1, 2048)"], found["training step"]["(1, 2048)"]
    peer = last["nn.MHA, weights, train"].median
    wanted = 0.65 if device == "cuda" else 0.80
    goals.append(Goal("weights: to nn.MHA's", last["attnlib, weights"].median / peer, wanted))
    goals.append(Goal("training step, weights: to the floor", step["attnlib, weights"].median, 1.4))
    return goals


def memory_goals(held: dict[str, float]) -> list[Goal]:
    """Compare the peaks, in weights tensors, with what was aimed at."""
    wanted = {
        "attnlib, no weights": 0.12,
        "attnlib, one head's weights": 0.30,
        "attnlib, weights": 1.15,
        "attnlib, weights, training step": 1.20,
    }
    return [Goal(f"memory: {case}", held[case], most) for case, most in wanted.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", choices=["times", "memory"], help="leave the other out")
    parser.add_argument("--rounds", type=float, default=1.0, help="times as many rounds")
    parser.add_argument("--peak", choices=HELD, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    device = arguments.device
    if device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a GPU that torch can use")
    if arguments.peak:
        print_peak(arguments.peak, device)
        return
    record: dict[str, dict] = {}
    goals: list[Goal] = []
    if arguments.only != "memory":
        for threads in (1,) if device == "cuda" else (1, 2):
            kind = "GPU" if device == "cuda" else CLOCKS[threads]
            record[kind] = measure_times(device, threads, arguments.rounds)
            for what, found in record[kind].items():
                show_times(f"{what}, {kind}", found)
            if threads == 1:
                goals += time_goals(record[kind], device)
    if arguments.only != "times":
        held = {
            case: in_a_fresh_process(__file__, "--device", device, "--peak", case) for case in HELD
        }
        record["memory, in weights tensors"] = held
        rows = [[case, f"{peak:.2f}"] for case, peak in held.items()]
        show(f"Peak memory at T = {MEMORY_TOKENS}", ["", "weights tensors"], rows)
        goals += memory_goals(held)
    show_goals(goals)
    if arguments.only is None:
        save("attention", device, record, goals)


if __name__ == "__main__":
    main()
