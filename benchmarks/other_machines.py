"""Does each page hold on other machines? Executes it here as they would, and names what fails.

    python benchmarks/other_machines.py                      # every page, every setting: an hour
    python benchmarks/other_machines.py --pages L03 L08 --settings native default
    python benchmarks/other_machines.py --settings changed --seeds 1 2 3 4 5

`native` is this machine. Other processors are imitated by the instructions that torch and its
libraries may use; `default` has the oldest. Pages that train are executed with two and four
`threads`, too, and in a `changed` world: there first weights are others by a millionth (see
`attncourse.training.changed_world`), those of loops written out on a page, too, and instructions
the oldest. The Python is the one that this runs under.

Exit status 1: a cell fails.
"""

import argparse
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from textwrap import shorten

from measuring import hardware

ROOT = Path(__file__).parents[1]
# For the tools that tests share with this program, and how the site's build executes a page.
sys.path += [str(ROOT / "tests"), str(ROOT / "book" / "extensions")]

import torch  # noqa: E402
from course.execution import execute as execute_page  # noqa: E402
from course.execution import failures_of  # noqa: E402
from tools.lesson_runs import CONFIG, all_notebooks, code_of, readers_kernels  # noqa: E402

from attncourse.training.changed_world import VARIABLE  # noqa: E402

# What torch, MKL and oneDNN call them; the oldest first.
LIBRARIES = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
INSTRUCTIONS = {
    "default": ("default", "SSE4_2", "SSE41"),
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512", "AVX512_CORE"),
}
WHERE_IT_TRAINS = ("threads", "changed")

OWN = torch.backends.cpu.get_cpu_capability()


def settings(seeds: list[int]) -> dict[str, dict[str, str]]:
    """Return the environment of each setting that this machine can imitate."""
    names = list(INSTRUCTIONS)
    known = names[: names.index(OWN.lower()) + 1] if OWN.lower() in names else []
    found = {"native": {}}
    found |= {name: dict(zip(LIBRARIES, INSTRUCTIONS[name], strict=True)) for name in known}
    found |= {f"threads {number}": {"OMP_NUM_THREADS": str(number)} for number in (2, 4)}
    oldest = found.get("default", {})  # nothing where the processor is of another kind
    begin = {"PYTHONSTARTUP": str(ROOT / "benchmarks" / "changed_loops.py")}
    return found | {f"changed {seed}": oldest | begin | {VARIABLE: str(seed)} for seed in seeds}


def kind(setting: str) -> str:
    """Return what a setting is called without its number."""
    return setting.split()[0]


def trains(page: str) -> bool:
    """Return whether a page trains: by attncourse's own loop, or by one that stands on the page."""
    return re.search(r"(?<![\w.])train\(|torch\.optim\.", code_of(page)) is not None


def execute(run: tuple[str, str, dict[str, str]]) -> tuple[list[str], float]:
    """Return which cells of a page fail in a setting, and the seconds that it took."""
    _, page, environment = run
    with readers_kernels(**environment):
        notebook, seconds = execute_page(ROOT / f"{page}.md", CONFIG["execute"]["timeout"])
    return [f"{one.name}: {one.error}" for one in failures_of(notebook)], seconds


def main() -> int:
    sys.stdout.reconfigure(errors="replace")  # errors of cells have signs that Windows may lack
    kinds = list(dict.fromkeys(map(kind, settings([0]))))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", nargs="+", default=[""], help="how their names begin: L03")
    parser.add_argument("--settings", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of changed worlds")
    parser.add_argument("--processes", type=int, default=2, help="how many pages at a time")
    asked = parser.parse_args()
    beginnings = tuple(f"book/{name}" for name in asked.pages)
    pages = {page: trains(page) for page in all_notebooks() if page.startswith(beginnings)}
    runs = [
        (setting, page, environment)
        for setting, environment in settings(asked.seeds).items()
        if kind(setting) in asked.settings
        for page in pages
        if pages[page] or kind(setting) not in WHERE_IT_TRAINS
    ]
    if not runs:
        parser.error("no page is so called and has such a setting")
    machine = hardware("cpu") | {"instructions": OWN}
    print(", ".join(f"{what} {which}" for what, which in machine.items()), flush=True)
    failing = 0
    with ProcessPoolExecutor(asked.processes) as pool:
        for run, (failures, seconds) in zip(runs, pool.map(execute, runs), strict=True):
            setting, page, _ = run
            failing += bool(failures)
            verdict = "FAILS" if failures else "holds"
            print(f"{setting:10} {page:36} {seconds:5.0f} s  {verdict}", flush=True)
            for failure in failures:
                print(f"    {shorten(failure, 300)}", flush=True)
    print(f"{failing} of {len(runs)} fail" if failing else f"all {len(runs)} hold")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
