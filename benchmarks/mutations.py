"""Which mistakes `museum.diagnose` sees: attnlib's own attention, changed in one place at a time.

    python benchmarks/mutations.py              # all of them, about half an hour on one core
    python benchmarks/mutations.py --every 10   # every tenth

Each mutant (tests/tools/mutants.py) is diagnosed. One that is found healthy is compared with plain
loops on random valid calls, among them gradients, caches and dropout (tests/tools/valid_calls.py):

* killed: broken, or different at the edges, or it can't even be built or called;
* equal: healthy, and no call tells it from attnlib's attention;
* own: healthy, and different only where an option is used that attnlib alone has (score_bias,
  head_mask, weights_for, weights_out, kdim, vdim), for which nobody's attention is asked;
* missed: healthy, and different. There should be none.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from measuring import Goal, save, show, show_goals
from rich.progress import track

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the tools that tests share

from tools.mutants import FILES, Mutation, build, mutations
from tools.valid_calls import OWN, USUAL, first_difference

from attnlib import museum

CALLS = 40  # random calls of each kind


def verdict(mutation: Mutation) -> tuple[str, str]:
    """Return what becomes of a mutant, and why."""
    try:
        candidate = build(mutation)
        found = museum.diagnose(candidate)
    except Exception as error:
        return "killed", f"{type(error).__name__}: {error}"
    if found.heading != "Healthy.":
        return "killed", str(found)
    for name, calls in (("missed", USUAL), ("own", OWN)):
        difference = first_difference(candidate, calls, CALLS)
        if difference:
            return name, difference
    return "equal", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only every so many mutations")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = mutations()[:: arguments.every]
    counts, why, slowest = Counter(), {}, 0.0
    for mutation in track(chosen, "diagnosing"):
        start = time.process_time()
        name, reason = verdict(mutation)
        slowest = max(slowest, time.process_time() - start) if name == "killed" else slowest
        counts[mutation.file, name] += 1
        if name in ("missed", "own", "equal"):
            why.setdefault(name, []).append(f"{mutation}: {reason}" if reason else str(mutation))
    names = ("killed", "equal", "own", "missed")
    rows = [[file, *(str(counts[file, name]) for name in names)] for file in FILES]
    totals = {name: sum(counts[file, name] for file in FILES) for name in names}
    rows.append(["all", *(str(totals[name]) for name in names)])
    show("Mutants of attnlib's attention", ["file", *names], rows)
    for mutation in why.get("missed", ()):
        print("missed:", mutation)
    share = totals["killed"] / (totals["killed"] + totals["missed"])
    print(f"killed, of those that differ on calls that anybody's attention takes: {share:.1%}")
    print(f"slowest diagnosis: {slowest:.1f} CPU seconds")
    reached = [Goal("missed", totals["missed"], 0), Goal("slowest, CPU seconds", slowest, 3)]
    show_goals(reached)
    if arguments.every == 1:
        save("mutations", "cpu", {"counts": totals, **why}, reached)


if __name__ == "__main__":
    main()
