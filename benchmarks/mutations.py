"""Which mistakes `attndoctor.diagnose` sees: our own attention, changed in one place at a time.

    python benchmarks/mutations.py              # all of them, about ten minutes on two cores
    python benchmarks/mutations.py --every 10   # every tenth

Each mutant (mutants.py) is asked what a diagnosis asks; a name isn't looked for. One
that fails nothing is compared with attnlib's own on random valid calls (valid_calls.py), gradients,
caches and dropout among them:

* killed: broken, or different at the edges, or it can't even be built or called;
* told: healthy and different, but the diagnosis tells that it was taken for another kind of module
  (one without masks [T, T], say) or couldn't be asked something: it raises an error for what right
  code of others doesn't take either;
* equal: healthy, and no call tells it from attnlib's attention;
* own: healthy, and different only where an option is used that attnlib alone has (score_bias,
  head_mask, kdim, vdim), for which nobody's attention is asked;
* deeper: healthy, and different only in second derivatives or in forward mode, for which nobody's
  attention is asked either: PyTorch's fused kernels have none;
* missed: healthy, and different. There should be none.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import torch
from measuring import Goal, save, show, show_goals
from rich.progress import track
from valid_calls import DEEPER, OWN, USUAL, first_difference

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the tools that tests share

from mutants import FILES, Mutation, build, mutations, seen

CALLS = 24  # random calls of each kind


def verdict(mutation: Mutation) -> tuple[str, str]:
    """Return what becomes of a mutant, and why."""
    try:
        candidate = build(mutation)
    except Exception:
        return "killed", ""
    found = seen(candidate)
    if found == "wrong":
        return "killed", ""
    for name, calls in (("missed", USUAL), ("own", OWN), ("deeper", DEEPER)):
        difference = first_difference(candidate, calls, CALLS)
        if difference:
            return "told" if found and name == "missed" else name, difference
    return "equal", ""


def verdict_apart(mutation: Mutation) -> tuple[str, str]:
    """Return `verdict` from a process of its own, since a mutant may write beyond its memory."""
    apart = get_context("forkserver")
    apart.set_forkserver_preload(["attndoctor"])  # so that each needn't import PyTorch again
    with ProcessPoolExecutor(1, apart, torch.set_num_threads, (1,)) as process:
        try:
            return process.submit(verdict, mutation).result()
        except BrokenProcessPool:
            return "killed", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only every so many mutations")
    parser.add_argument("--listed", action="store_true", help="list all that are not killed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    chosen = mutations()[:: arguments.every]
    counts, why = Counter(), {}
    with ThreadPoolExecutor(arguments.processes) as lanes:
        verdicts = list(track(lanes.map(verdict_apart, chosen), "diagnosing", len(chosen)))
    for mutation, (name, reason) in zip(chosen, verdicts, strict=True):
        counts[mutation.path.stem, name] += 1
        if name != "killed":
            why.setdefault(name, []).append(f"{mutation}: {reason}" if reason else str(mutation))
    names = ("killed", "told", "equal", "own", "deeper", "missed")
    rows = [[file, *(str(counts[file, name]) for name in names)] for file in FILES]
    totals = {name: sum(counts[file, name] for file in FILES) for name in names}
    rows.append(["all", *(str(totals[name]) for name in names)])
    show("Mutants of attnlib's attention", ["file", *names], rows)
    for name in names[1:] if arguments.listed else ("missed",):
        for mutation in why.get(name, ()):
            print(f"{name}: {mutation}")
    different = totals["killed"] + totals["told"] + totals["missed"]
    share = totals["killed"] / different
    print(f"killed, of those that differ on calls that anybody's attention takes: {share:.1%}")
    reached = [Goal("missed", totals["missed"], 0)]
    show_goals(reached)
    if arguments.every == 1:
        save("mutations", "cpu", {"counts": totals, "share killed": share}, reached)


if __name__ == "__main__":
    main()
