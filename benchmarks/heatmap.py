"""What an exact heatmap of a long sequence costs, beside attention itself and other ways to it.

    python benchmarks/heatmap.py                 # about six minutes on two cores
    python benchmarks/heatmap.py --only times    # or: memory
    python benchmarks/heatmap.py --tokens 1024 4096
    python benchmarks/heatmap.py --device cuda

Times are ratios to PyTorch's fused attention on the same queries and keys, forward, float32
(bfloat16 on a GPU), d_k = 64, maps of 256 x 256 cells: processor time on one thread, and time on
the wall with two. The others are the dense map, pooled, where it fits into memory; and fused
attention whose values are one-hot labels of the cells. Memory is the peak beyond queries and keys,
in a fresh process.
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
from torch import Tensor

from attnlib.heatmap import attention_heatmap

D_K, GRID = 64, 256
Run = Callable[[], object]

# (T, h, causal): rounds, and the ratio to the fused kernel that was aimed at, if any.
CASES: dict[str, dict[tuple[int, int, bool], tuple[int, float | None]]] = {
    "cpu": {
        (1024, 8, False): (15, 2.5),
        (4096, 2, False): (9, 1.5),
        (16384, 1, False): (5, 1.0),
        (65536, 1, False): (3, 1.0),
        (4096, 2, True): (9, 1.8),
        (16384, 1, True): (5, 1.1),
    },
    "cuda": {
        (4096, 8, False): (25, None),  # cells too small for the kernel, so plain torch
        (16384, 8, False): (25, None),
        (65536, 8, False): (15, 1.0),
        (65536, 8, True): (15, None),
    },
}
TOKENS = sorted({T for cases in CASES.values() for T, _, _ in cases})
CLOCKS = {1: "processor time, 1 thread", 2: "wall time, 2 threads"}
DENSE_UP_TO = 16384  # beyond, one map of weights takes 16 GiB
MEMORY_SPARE = 8 * 2**20  # what a map may take beyond twice the queries


def inputs(T: int, h: int, device: str) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    q, k = (torch.randn(1, h, T, D_K, device=device, dtype=dtype) for _ in range(2))
    return q, k


def candidates(q: Tensor, k: Tensor, causal: bool) -> dict[str, Run]:
    """Return every way to a map, and the fused kernel that gives none."""
    T = q.shape[2]
    found: dict[str, Run] = {
        "fused attention": lambda: F.scaled_dot_product_attention(q, k, k, is_causal=causal),
        "attnlib": lambda: attention_heatmap(q, k, grid=GRID, causal=causal),
    }
    if T <= 4096:
        found["one-hot values"] = lambda: one_hot(q, k, causal)
    if T <= DENSE_UP_TO:
        found["dense, pooled"] = lambda: dense(q, k, causal)
    return found


def dense(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    scores = q * D_K**-0.5 @ k.transpose(-2, -1)
    if causal:
        T = q.shape[2]
        scores.masked_fill_(torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1), -torch.inf)
    weights = torch.softmax(scores, -1, out=scores)
    return F.avg_pool2d(weights, q.shape[2] // GRID)


def one_hot(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    T = k.shape[2]
    labels = torch.arange(T, device=q.device) // (T // GRID)
    values = F.one_hot(labels, GRID).to(q.dtype).expand(*k.shape[:2], -1, -1)
    wide_q, wide_k = (F.pad(x, (0, GRID - D_K)) for x in (q, k))  # so that the kernel stays fused
    rows = F.scaled_dot_product_attention(wide_q, wide_k, values, is_causal=causal, scale=D_K**-0.5)
    return rows.unflatten(2, (GRID, -1)).mean(3)


def name_of(T: int, h: int, causal: bool) -> str:
    return f"{T // 1024}k tokens, {h} heads" + ", causal" * causal


def measure_times(device: str, threads: int, tokens: list[int]) -> tuple[dict, list[Goal]]:
    torch.set_num_threads(threads)
    clock = clock_of(device, threads)
    found, goals = {}, []
    for (T, h, causal), (rounds, wanted) in CASES[device].items():
        if T not in tokens:
            continue
        case = name_of(T, h, causal)
        seconds = take_turns(candidates(*inputs(T, h, device), causal), rounds, clock)
        found[case] = ratios(seconds, "fused attention")
        if wanted is not None:
            goals.append(Goal(f"{case}: to fused attention", found[case]["attnlib"].median, wanted))
    return found, goals


def measure_memory(device: str, tokens: list[int]) -> tuple[dict[str, float], list[Goal]]:
    """Return the peaks in MiB."""
    found, goals = {}, []
    for T, h, causal in CASES[device]:
        if T not in tokens:
            continue
        case = name_of(T, h, causal)
        size = ["--peak", str(T), str(h), str(int(causal))]
        found[case] = in_a_fresh_process(__file__, "--device", device, *size)
        bytes_of_q = T * h * D_K * (2 if device == "cuda" else 4)
        most = (2 * bytes_of_q + MEMORY_SPARE) / 2**20
        goals.append(Goal(f"{case}: MiB", found[case], most))
    return found, goals


def print_peak(T: int, h: int, causal: bool, device: str) -> None:
    torch.set_num_threads(1)
    attention_heatmap(*inputs(512, h, device), grid=GRID, causal=causal)  # all code is loaded now
    q, k = inputs(T, h, device)
    peak = peak_bytes(lambda: attention_heatmap(q, k, grid=GRID, causal=causal), device)
    print(peak / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", choices=["times", "memory"], help="leave the other out")
    parser.add_argument("--tokens", type=int, nargs="+", choices=TOKENS, default=TOKENS)
    parser.add_argument("--peak", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    device = arguments.device
    if device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a GPU that torch can use")
    if arguments.peak:
        T, h, causal = arguments.peak
        print_peak(T, h, bool(causal), device)
        return
    record: dict[str, dict] = {}
    goals: list[Goal] = []
    if arguments.only != "memory":
        for threads in (1,) if device == "cuda" else (1, 2):
            kind = "GPU" if device == "cuda" else CLOCKS[threads]
            found, reached = measure_times(device, threads, arguments.tokens)
            record[f"times, as multiples of fused attention, {kind}"] = found
            goals += reached if threads == 1 else []
            names = list(dict.fromkeys(name for case in found.values() for name in case))
            rows = [
                [case, *(str(of.get(name, "")) for name in names)] for case, of in found.items()
            ]
            show(f"Multiples of fused attention, {kind}: median (middle half)", ["", *names], rows)
    if arguments.only != "times":
        peaks, reached = measure_memory(device, arguments.tokens)
        record["memory, MiB beyond queries and keys"] = peaks
        goals += reached
    show_goals(goals)
    if arguments.only is None and arguments.tokens == TOKENS:
        save("heatmap", device, record, goals)


if __name__ == "__main__":
    main()
