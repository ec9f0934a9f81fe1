"""What an atlas of a GPT-2 small costs: time, memory, and the size of its page.

    python benchmarks/atlas.py              # about two minutes on one core

Its weights are random (seed 0), as its text is: 12 layers of 12 heads, 512 tokens, float32. Times
are processor seconds on one thread, as ratios to the model alone, which reads the text once. Beside
the atlas stands the same model that is asked for all weights (`output_attentions=True`). Memory is
what a call holds at its peak beyond the model, in a process of its own, at 512 and at 1,024 tokens.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from measuring import (
    Goal,
    in_a_fresh_process,
    peak_bytes,
    ratios,
    save,
    show,
    show_goals,
    take_turns,
)

from attncourse import atlas

WAYS = ("model alone", "all weights handed out", "atlas")
LENGTHS = 512, 1024


def candidate(way: str, T: int) -> Callable[[], object]:
    """Return one way of having a GPT-2 read T tokens."""
    torch.manual_seed(0)
    eager = way == "all weights handed out"
    settings = transformers.GPT2Config(attn_implementation="eager" if eager else "sdpa")
    model = transformers.GPT2Model(settings).eval()
    ids = torch.randint(settings.vocab_size, (1, T))
    if way == "atlas":
        return lambda: atlas.from_model(model, ids, progress=False)
    return torch.no_grad()(lambda: model(ids, output_attentions=eager, use_cache=False))


def page_bytes(T: int) -> int:
    """Return how large the page of an atlas is."""
    made = candidate("atlas", T)()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "atlas.html")
        made.save_html(path)
        return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what an atlas of heads costs.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", nargs=2, metavar=("WAY", "T"), help="used by itself")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    if asked.peak:
        way, T = asked.peak
        print(peak_bytes(candidate(way, int(T)), "cpu"))
        return
    T = LENGTHS[0]
    seconds = take_turns({way: candidate(way, T) for way in WAYS}, asked.rounds, time.process_time)
    times = ratios(seconds, WAYS[0])
    peaks = {
        way: {
            f"T = {T}": in_a_fresh_process(__file__, "--peak", way, str(T)) / 2**20 for T in LENGTHS
        }
        for way in WAYS
    }
    taken = statistics.median(seconds["atlas"])
    size = page_bytes(T) / 1e6
    columns = ["", "time", *(f"MiB, T = {T}" for T in LENGTHS)]
    rows = [[way, str(times[way]), *(f"{mib:.0f}" for mib in peaks[way].values())] for way in WAYS]
    show(f"GPT-2 small, times at T = {T}", columns, rows)
    goals = [
        Goal("processor seconds of an atlas of 144 heads, 512 tokens", taken, 60),
        Goal("MB of its page", size, 5),
    ]
    show_goals(goals)
    save("atlas", "cpu", {"time": times, "MiB": peaks}, goals)


if __name__ == "__main__":
    main()
