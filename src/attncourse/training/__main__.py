"""Train a recipe once more: `python -m attncourse.training concord --seed 0`.

It prints the model's digest, which is the same on every machine and in the course's pages, and
compares the training with the card of the saved weights, if there are some. Of a sweep, such as
`staircase`, it takes the first steps of a training of each kind. The exit status is 0 if all
agrees (or nothing is saved), 1 if something differs, 2 if the command can't be followed, 130 if it
was interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from attncourse import data
from attncourse.training.changed_world import VARIABLE
from attncourse.training.loop import Trained, train
from attncourse.training.recipes import RECIPES
from attncourse.training.saving import Comparison, compare, save
from attncourse.training.sweeps import EARLY, SWEEPS, differences, run
from attndoctor.support.printing import echo

INTERRUPTED = 130  # as a shell says of what Ctrl-C has ended
EVERY = 25  # steps between the evaluations on a card


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    args = _parser().parse_args(arguments)
    try:
        if args.recipe in SWEEPS:
            return _sweep(args)
        recipe = RECIPES[args.recipe]
        _require_savable(args)
        if args.heads is not None:
            recipe = recipe.changed(model={"num_heads": args.heads})
        trained = train(
            recipe, seed=args.seed, progress=not args.quiet, stop=args.stop,
            evaluate_every=EVERY if args.save else None,
        )  # fmt: skip
        if args.save:
            card = save(trained)
            echo(f"saved: digest {card.digest}")
        elif (args.recipe, args.seed) not in data.saved() or args.heads is not None:
            _print_final(trained)
            echo("No weights of this model are saved: there is nothing to compare.")
            return 0
        rows = compare(trained, data.read_card(args.recipe, args.seed))
    except (TypeError, ValueError, ImportError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    _print_rows(rows)
    return 0 if all(row.agrees for row in rows) else 1


def _require_savable(args: argparse.Namespace) -> None:
    if args.save and args.heads is not None:
        raise ValueError("--save keeps the recipe's own number of heads, got --heads, too")
    if args.save and VARIABLE in os.environ:
        raise ValueError(f"--save keeps models of the usual world, got {VARIABLE} set, too")


def _sweep(args: argparse.Namespace) -> int:
    """Train a whole sweep and save it, or compare its first steps, and return the exit status."""
    _require_savable(args)
    if args.seed or args.stop is not None or args.heads is not None:
        raise ValueError(
            "--seed, --heads and --stop are for recipes: a sweep has seeds, heads and steps of its "
            "own"
        )
    sweep = SWEEPS[args.recipe]
    if args.save:
        run(sweep)
        return 0
    found = differences(sweep, data.load_sweep(sweep.name))
    echo("\n".join(found) or f"The first {EARLY} losses of each training are the saved ones.")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attncourse.training",
        description="Train a recipe or sweep of the course again, and compare with what is saved.",
        epilog="Exit status: 0 all agrees, or nothing is saved; 1 something differs; 2 the command "
        "can't be followed; 130 it was interrupted.",
    )
    parser.add_argument("recipe", choices=[*RECIPES, *SWEEPS], help="a recipe, or a sweep")
    parser.add_argument("--seed", type=int, default=0, help="of the training (0 if left out)")
    parser.add_argument("--heads", type=int, help="how many (the recipe's own if left out)")
    parser.add_argument("--stop", type=int, metavar="STEPS", help="end after this many steps")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    parser.add_argument("--save", action="store_true", help="save weights and card in data/")
    return parser


def _print_rows(rows: list[Comparison]) -> None:
    """Print numbers beside those of the card, a line each; digests below each other."""
    width = max(len(row.what) for row in rows)
    echo(f"{'':{width}}       now     saved")
    for row in rows:
        verdict = "" if row.agrees else "  DIFFERS"
        if isinstance(row.found, str):
            echo(f"{row.what:{width}}  {row.found}{verdict}")
            if not row.agrees:
                echo(f"{'saved':{width}}  {row.saved}")
        else:
            echo(f"{row.what:{width}}  {row.found:.6f}  {row.saved:.6f}{verdict}")


def _print_final(trained: Trained) -> None:
    echo(f"{len(trained.losses)} steps in {trained.seconds:.1f} seconds")
    echo(f"digest {trained.digest}")
    for name, value in asdict(trained.final).items():
        shares = value if isinstance(value, dict) else {"": value}
        for own, share in shares.items():
            echo(f"{f'{name} {own}'.strip():34} {share:.4f}")


if __name__ == "__main__":
    sys.exit(main())
