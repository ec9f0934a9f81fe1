"""Compare several processes with one: `python -m attncourse.parallel tensor --processes 2`.

`tensor` splits the heads of the GPT of names, and asks it once; `data` splits the batches of its
training. Below torchrun the processes are torchrun's. The exit status is 0 if all is equal, 1 if
something differs, 2 if the command can't be followed or a process has ended too soon, 130 if it was
interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import torch.distributed as dist

from attncourse.parallel.data_parallel import STEPS, compare_trainings
from attncourse.parallel.processes import TIMEOUT, ProcessEndedError
from attncourse.parallel.reports import ModelReport, TrainingReport
from attncourse.parallel.tensor_parallel import compare_models
from attncourse.training import RECIPES
from attndoctor.cli import say

INTERRUPTED = 130  # as a shell says of what Ctrl-C has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    asked = _parser().parse_args(arguments)
    speaks = not dist.is_torchelastic_launched() or os.environ.get("RANK") == "0"  # one for all
    try:
        report = _compare(asked)
    except (TypeError, ValueError, ProcessEndedError) as error:
        if speaks:
            print(f"Not compared: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if speaks:
            print("stopped", file=sys.stderr)
        return INTERRUPTED
    if speaks:
        say(str(report))
    return 0 if report.equal else 1


def _compare(asked: argparse.Namespace) -> ModelReport | TrainingReport:
    sizes = {"num_heads": asked.num_heads, "num_layers": asked.num_layers}
    given = {name: size for name, size in sizes.items() if size is not None}
    recipe = RECIPES["names"].changed(model=given)
    if asked.what == "tensor":
        return compare_models(
            asked.processes, recipe=recipe, seed=asked.seed, timeout=asked.timeout
        )
    return compare_trainings(
        asked.processes, recipe=recipe, seed=asked.seed, steps=asked.steps, timeout=asked.timeout
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attncourse.parallel",
        description="Compare the GPT of names over several processes with the same one in one.",
        epilog="Exit status: 0 equal; 1 something differs; 2 the command can't be followed, or a "
        "process has ended too soon; 130 it was interrupted.",
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="tensor | data")
    tensor = what.add_parser("tensor", help="split heads and neurons; compare outputs, gradients")
    data = what.add_parser("data", help="split the batches of a training; compare weights")
    for command in (tensor, data):
        command.add_argument("--processes", type=int, help="how many (2, or those of torchrun)")
        command.add_argument("--seed", type=int, default=0, help="of weights and names (0)")
        command.add_argument("--num-heads", type=int, help="h of each block (4)")
        command.add_argument("--num-layers", type=int, help="how many blocks (1)")
        command.add_argument(
            "--timeout", type=float, default=TIMEOUT, metavar="SECONDS",
            help=f"how long a process waits for the others ({TIMEOUT:g})",
        )  # fmt: skip
    data.add_argument("--steps", type=int, default=STEPS, help=f"of the recipe ({STEPS})")
    return parser


if __name__ == "__main__":
    sys.exit(main())
