"""Train a recipe once more: `python -m attnlib.training concord --seed 0`.

What comes out is held against the card of the saved weights, if there are some. The exit status is
0 if all agrees (or nothing is saved), 1 if something differs, 2 if the command can't be followed.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict

from attnlib import data
from attnlib.training.loop import Trained, train
from attnlib.training.recipes import RECIPES
from attnlib.training.saving import Comparison, compare, save

EVERY = 25  # steps after each of which a card tells what is right


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        trained = train(
            RECIPES[asked.recipe], seed=asked.seed, progress=not asked.quiet, stop=asked.stop,
            evaluate_every=EVERY if asked.save else None,
        )  # fmt: skip
        if asked.save:
            card = save(trained)
            print(f"saved: {card.size} bytes, sha256 {card.sha256}")
        elif (asked.recipe, asked.seed) not in data.saved():
            _print_final(trained)
            print("No weights of this recipe and seed are saved: there is nothing to compare.")
            return 0
        rows = compare(trained, data.read_card(asked.recipe, asked.seed))
    except (TypeError, ValueError, ImportError) as error:
        print(error, file=sys.stderr)
        return 2
    _print_rows(rows)
    return 0 if all(row.agrees for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attnlib.training",
        description="Train a recipe of the course once more, and compare with its saved weights.",
        epilog="Exit status: 0 all agrees, or nothing is saved; 1 something differs; 2 the command "
        "can't be followed.",
    )
    parser.add_argument("recipe", choices=RECIPES, help="what to train")
    parser.add_argument("--seed", type=int, default=0, help="of the training (0 if left out)")
    parser.add_argument("--stop", type=int, metavar="STEPS", help="end after this many steps")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    parser.add_argument("--save", action="store_true", help="save weights and card in attnlib.data")
    return parser


def _print_rows(rows: list[Comparison]) -> None:
    width = max(len(row.what) for row in rows)
    print(f"{'':{width}}     now   saved  may differ by")
    for row in rows:
        verdict = "" if row.agrees else "  DIFFERS"
        print(f"{row.what:{width}}  {row.found:.4f}  {row.saved:.4f}  {row.tolerance:g}{verdict}")


def _print_final(trained: Trained) -> None:
    print(f"{len(trained.losses)} steps in {trained.seconds:.1f} seconds")
    for name, value in asdict(trained.final).items():
        shares = value if isinstance(value, dict) else {"": value}
        for own, share in shares.items():
            print(f"{name} {own}".strip().ljust(34), f"{share:.4f}")


if __name__ == "__main__":
    sys.exit(main())
