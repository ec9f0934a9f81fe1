"""What a diagnosis costs: of every exhibit, of pairs of them, and of public code, right and broken.

    python benchmarks/diagnose.py            # about ten minutes on one core

Processor seconds on one thread, each with nothing remembered of the diagnoses before: a reader's
first diagnosis. A built module of d = 768, h = 12 is among them.
"""

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from measuring import Goal, Summary, save, show, show_goals
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the attentions that tests share

from tools import public_attentions as public
from tools.broken_attentions import BROKEN, scaled_by

import attndoctor
from attndoctor import museum
from attndoctor.module_under_test import reference_answer
from attndoctor.museum import known_modules
from attndoctor.reference import reference
from attnlib import MultiHeadAttention

PAIRS = 40
RIGHT = {
    one.__name__: one
    for one in (
        MultiHeadAttention, known_modules.MultiHeadedAttention, known_modules.CausalSelfAttention,
        nn.MultiheadAttention,
    )
} | {
    name: getattr(public, name)
    for name in (
        "NanoGPTExplicit", "WithMasksOfFourAxes", "ListOfHeads", "ValuesFirst", "Timm",
        "PackedByHeads", "PackedByNumbers", "WithNumbersForAMask", "WithCrossAttention",
        "Torchscale", "RotaryInside",
    )
}  # fmt: skip


def candidates(pairs: int) -> dict[str, dict[str, Any]]:
    """Return {kind: {name: candidate}}."""
    random.seed(0)
    free = [
        pair
        for pair in combinations(museum.EXHIBITS, 2)
        if not set(pair[0].steps) & set(pair[1].steps)
    ]
    two = {
        f"{a.name} and {b.name}": partial(museum.SteppedAttention, steps=a.steps | b.steps)
        for a, b in random.sample(free, pairs)
    }
    return {
        "exhibits": {exhibit.name: exhibit for exhibit in museum.EXHIBITS},
        f"{pairs} pairs of exhibits, drawn (seed 0)": two,
        "public code, right": RIGHT,
        "broken in ways of their own": {name: one for name, (one, *_) in BROKEN.items()},
        "built, d = 768, h = 12": {
            "nn.MultiheadAttention": nn.MultiheadAttention(768, 12, batch_first=True),
            "MultiHeadedAttention": known_modules.MultiHeadedAttention(12, 768),
            "a broken one": BROKEN["TrainsUnscaled"][0](768, 12),
            "one that no exhibit is": scaled_by(lambda d_k, **_: math.log2(d_k))(768, 12),
        },
    }


def seconds(diagnose: Callable[[], attndoctor.Diagnosis]) -> float:
    """Return what a first diagnosis costs."""
    reference_answer.cache_clear()
    reference.cache_clear()
    start = time.process_time()
    diagnose()
    return time.process_time() - start


def measure(pairs: int) -> dict[str, dict[str, float]]:
    """Return {kind: {name: seconds}}."""
    torch.set_num_threads(1)
    attndoctor.diagnose(MultiHeadAttention)  # what torch sets up once doesn't count
    return {
        kind: {name: seconds(partial(attndoctor.diagnose, one)) for name, one in group.items()}
        for kind, group in candidates(pairs).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how many to draw")
    arguments = parser.parse_args()
    found = measure(arguments.pairs)
    rows, goals = [], []
    for kind, group in found.items():
        slowest = max(group, key=lambda name: group[name])
        middle = statistics.median(group.values())
        rows.append([kind, str(len(group)), f"{middle:.2f}", f"{group[slowest]:.2f}", slowest])
        goals.append(Goal(f"slowest, {kind}: seconds", group[slowest], 3.0))
    show("Seconds per diagnosis", ["kind", "how many", "median", "slowest", "which"], rows)
    show_goals(goals)
    if arguments.pairs == PAIRS:
        kept = {kind: Summary.of(group.values()) for kind, group in found.items()}
        save("diagnose", "cpu", {"seconds": kept}, goals)


if __name__ == "__main__":
    main()
