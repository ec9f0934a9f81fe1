"""Diagnose an attention in a file: `python -m attndoctor path.py:Class`.

The file is run, as by `python path.py`. Exit status: 0 healthy; 1 broken, meant so or not (with
--edges also where it differs at the edges); 2 it can't be tested, because of the command, of the
file, of how the attention is called, or of what it is (positions inside), or the time was over.
"""

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from types import FunctionType
from typing import Any

from torch import nn

from attndoctor.diagnosis import CANNOT_BE_ASKED, NOT_FINISHED, Diagnosis, diagnose
from attndoctor.options import CHOICES
from attndoctor.support.printing import echo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    as_json = options.pop("json")
    try:
        diagnosis = diagnose(_load(options.pop("candidate")), **options)
    except (TypeError, ValueError) as error:
        print(fill(f"Not asked: {error}", 100), file=sys.stderr)
        if as_json:
            not_asked = Diagnosis(False, str(error), heading="Not asked.")
            echo(json.dumps(not_asked.as_dict(), indent=2))
        return 2
    lines = (fill(line, 100, subsequent_indent="  ") for line in repr(diagnosis).split("\n"))
    echo(json.dumps(diagnosis.as_dict(), indent=2) if as_json else "\n".join(lines))
    if diagnosis.heading in (CANNOT_BE_ASKED, NOT_FINISHED):
        return 2
    return 0 if diagnosis else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attndoctor",
        description="Compare an attention of yours with attnlib's, and say what is wrong with it.",
        epilog=__doc__.partition("\n\n")[2],
    )
    parser.add_argument(
        "candidate", metavar="path.py:Name", help="a class, a function that builds one, or a module"
    )
    parser.add_argument("--num-heads", type=int, help="of a built module")
    for name, choices in CHOICES.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, choices=choices, help=f"as {name} of attndoctor.diagnose")
    flag = argparse.BooleanOptionalAction
    parser.add_argument("--bias", action=flag, help="whether its projections add biases")
    parser.add_argument("--batch-first", action=flag, help="whether tokens are [B, T, d]")
    parser.add_argument(
        "--out-projection", action=flag, default=True, help="whether it has one (W_o) inside"
    )
    parser.add_argument(
        "--scale", type=float, help="what dot products are multiplied by, if not 1 / sqrt(d_k)"
    )
    parser.add_argument("--json", action="store_true", help="print the diagnosis as JSON")
    parser.add_argument(
        "--seconds", type=_seconds, default=60, help="how long it may take (60), or none: no limit"
    )
    parser.add_argument(
        "--edges", action="store_true", help="let a difference at the edges count too"
    )
    return parser


def _seconds(written: str) -> float | None:
    return None if written == "none" else float(written)


def _load(where: str) -> Any:
    """Run a file, and return what stands in it under a name, or raise ValueError."""
    address, _, name = where.rpartition(":")
    path = Path(address)
    if not address or not name:
        raise ValueError(f"candidate must be path.py:Name, got {where!r}")
    if not path.is_file():
        raise ValueError(f"there is no file {address}")
    print(f"Running {address} ...", file=sys.stderr)
    sys.path.insert(0, str(path.resolve().parent))  # as python does, for the files beside it
    own_name = f"candidate_{path.stem}"  # one that hides no other module
    spec = importlib.util.spec_from_file_location(own_name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{address} isn't a Python file")
    file = importlib.util.module_from_spec(spec)
    sys.modules[own_name] = file  # dataclasses, for one, look there
    try:
        spec.loader.exec_module(file)
    except (Exception, SystemExit) as error:
        raise ValueError(f"running {address} raised {type(error).__name__}: {error}") from error
    if not hasattr(file, name):
        kinds = nn.Module | type | FunctionType  # what is or builds a module
        public = {one: value for one, value in vars(file).items() if not one.startswith("__")}
        there = [one for one, value in public.items() if isinstance(value, kinds)]
        raise ValueError(f"{address} has no {name!r}; there are: {', '.join(there) or 'none'}")
    return getattr(file, name)


if __name__ == "__main__":
    sys.exit(main())
