"""Which small mistakes in widgets and the site's extension their tests see: thirty, made by hand.

    python benchmarks/made_by_hand.py                     # all of made_by_hand.toml
    python benchmarks/made_by_hand.py formulas            # those of one room
    python benchmarks/made_by_hand.py --tests ../before   # what the tests of another checkout see

kills.py changes Python in its own process. A widget's JavaScript is run by a browser, and Sphinx
builds pages in others, so here each mistake is written into a copy of the repository, where
the tests of its room run until one fails, but for what asks the whole site: a build takes minutes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from kills import keep
from tools import ROOT

MISTAKES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NEEDED = ("src", "book", "benchmarks", "_config.yml", "_toc.yml", "pyproject.toml", "README.md")
NEEDED += ("requirements.txt", "CONTRIBUTING.md")


def run_tests(folder: Path, tests: list[str]) -> int:
    """Run tests in a folder until one fails; return pytest's exit status."""
    paths = os.pathsep.join(map(str, (folder / "src", Path(__file__).parent)))
    environment = os.environ | {"PYTHONPATH": paths, "CI": "true"}
    command = [sys.executable, "-m", "pytest", "-xq", "-p", "without_the_site", *tests]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    print(*[line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))][:1])
    return done.returncode


def survivors_of(room: str, tests_from: Path) -> list[str]:
    """Make each mistake of a room in turn; return those that no test sees."""
    survivors, tests = [], MISTAKES[room]["tests"]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in NEEDED:
            take = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            take((ROOT / name).resolve(), copy / name)
        shutil.copytree(tests_from / "tests", copy / "tests")
        if run_tests(copy, tests):
            sys.exit(f"{room}: its tests fail without a mistake, too")
        for mistake in MISTAKES[room]["mistakes"]:
            path = copy / mistake.get("file", MISTAKES[room]["file"])
            right = path.read_text(encoding="utf-8")
            assert right.count(mistake["right"]) == 1, mistake
            wrong = right.replace(mistake["right"], mistake["wrong"])
            path.write_text(wrong, encoding="utf-8")
            if not run_tests(copy, tests):
                survivors.append(f"{mistake['right']} -> {mistake['wrong']}")
                print(f"survives: {survivors[-1]}")
            path.write_text(right, encoding="utf-8")
    return survivors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", default=list(MISTAKES), help="all, if none is named")
    parser.add_argument("--tests", type=Path, default=ROOT, help="a checkout with other tests")
    parser.add_argument("--keep", metavar="NAME", help="keep the counts under this name")
    arguments = parser.parse_args()
    for room in arguments.rooms:
        number = len(MISTAKES[room]["mistakes"])
        survivors = survivors_of(room, arguments.tests)
        print(f"{room}: {number - len(survivors)} of {number} killed")
        if arguments.keep:
            record = {"mutants": number, "killed": number - len(survivors)}
            keep(room, arguments.keep, record | {"survivors": survivors})


if __name__ == "__main__":
    main()
