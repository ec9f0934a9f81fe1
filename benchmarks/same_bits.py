"""How surely trainings give the same bits on every machine, and which grid that takes.

    python benchmarks/same_bits.py [concord names ...] [--json]

Each recipe is trained from seed 0 in the settings of other_machines.py and with MKL's compatible
sums, each in a process of its own. The digests are compared. And of each step all weights are
compared as they are *before* they are rounded: two machines part where the border between two
multiples of the grid lies between their two numbers. The chance of that in one training is the sum
of their distances over the grid.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from measuring import Goal, save, show, show_goals
from other_machines import settings

from attncourse import data
from attncourse.training import GRID, RECIPES, SWEEPS, loop, train

SETTINGS = settings([]) | {"compatible": {"MKL_CBWR": "COMPATIBLE"}}
POWERS = (-18, -20, -22)  # of 2: grids that were tried
SHOWN = 30  # trainings at most whose digest a page shows


def trained(recipe: str, folder: Path, setting: str) -> str:
    """Train under a setting; keep all weights before they are rounded; return the digest."""
    command = [sys.executable, __file__, recipe, "--into", str(folder / setting)]
    environment = os.environ | SETTINGS[setting]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


def train_into(recipe: str, path: Path) -> None:
    """Train, and write each step's weights before they are rounded, float64 [steps, weights]."""
    rounded = loop.round_to_grid
    with path.open("wb") as file:

        def noted(weights) -> None:
            weights = list(weights)
            file.write(torch.cat([w.detach().flatten() for w in weights]).numpy().tobytes())
            rounded(weights)

        loop.round_to_grid = noted
        print(train(RECIPES[recipe], progress=False).digest)


def distance(one: Path, other: Path, steps: int) -> float:
    """Return the sum of all distances between two trainings' weights."""
    both = [np.memmap(path, np.float64).reshape(steps, -1) for path in (one, other)]
    return sum(float(np.abs(a - b).sum()) for a, b in zip(*both, strict=True))


def measured(recipe: str) -> dict:
    """Return the digests of a recipe, and how far the settings are from the first of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        digests = {setting: trained(recipe, folder, setting) for setting in SETTINGS}
        first, *others = SETTINGS
        steps = RECIPES[recipe].steps
        apart = {one: distance(folder / first, folder / one, steps) for one in others}
    return {"digests": digests, "apart": apart}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "recipes", nargs="*", choices=[*RECIPES, []], metavar="recipe", help="all if none is named"
    )
    parser.add_argument("--json", action="store_true", help="keep what was found")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)  # in a process of its own
    asked = parser.parse_args()
    if asked.into:
        return train_into(asked.recipes[0], asked.into)
    found = {recipe: measured(recipe) for recipe in asked.recipes or RECIPES}
    worst = {recipe: max(of["apart"].values()) for recipe, of in found.items()}
    show(
        "Sfc32 that a training comes out otherwise on another machine",
        ["recipe", "digests", *(f"2^{power}" for power in POWERS)],
        [
            [
                recipe,
                ", ".join(sorted({digest[:8] for digest in of["digests"].values()})),
                *(f"{worst[recipe] / 2.0**power:.1e}" for power in POWERS),
            ]
            for recipe, of in found.items()
        ],
    )
    largest = max(worst.values()) / GRID
    kept = len(data.saved()) + sum(len(data.load_sweep(name).trainings) for name in SWEEPS)
    goals = [
        Goal("recipes whose digests differ", sum(len({*of["digests"].values()}) > 1
                                                 for of in found.values()), 0),
        Goal("chance of one flip in all trainings that a page shows", SHOWN * largest, 1e-3),
        Goal(f"chance of one flip in all {kept} that are kept", kept * largest, 1 / 50),
    ]  # fmt: skip
    show_goals(goals)
    if asked.json:
        save("same_bits", "cpu", {"recipes": found}, goals)


if __name__ == "__main__":
    main()
