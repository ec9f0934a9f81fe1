"""Compare several processes with one: `python -m attncourse.parallel --processes 2`.

The heads of the GPT of names are split, and outputs and gradients are compared. Exit status: 0 if
all is equal, 1 if something differs, 2 if the command can't be followed or a process failed, 130 if
it was interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

from torch.multiprocessing.spawn import ProcessException

from attncourse.parallel.tensor_parallel import compare_models
from attndoctor.support.printing import echo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m attncourse.parallel",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--processes", type=int, default=2, help="how many (2)")
    args = parser.parse_args(arguments)
    try:
        report = compare_models(args.processes)
    except (TypeError, ValueError, ProcessException) as error:
        print(f"Not compared: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130  # as a shell says of what Ctrl-C has ended
    echo(str(report))
    return 0 if report.equal else 1


if __name__ == "__main__":
    sys.exit(main())
