"""Which tests of a room see a small mistake in its modules: mutants, and what kills each of them.

    python benchmarks/kills.py attention             # 100 mutants, drawn with seed 0
    python benchmarks/kills.py attention --first     # only whether each is killed: much sooner
    python benchmarks/kills.py attention --cover     # few tests that kill as many as all do
    python benchmarks/kills.py attention --seed 1 --tests tests/attnlib/test_masks.py

A room is some modules and their tests. A mutant (small_mistakes.py) changes one place. The
same seed draws the same mutants while the modules stay the same, whatever the tests are. Choose
tests with one seed, and report what they kill with another.

Each mutant is a fork of a process that has imported everything but this repository. It imports the
room anew, so that mistakes in what runs during imports count as well. Programs that a test starts
in a Python of their own see no mutant. A mutant is killed, too, if it takes three times as much
processor time as the room without one. Hypothesis draws the same examples for each mutant.

Some mutants compute the same as what they replace, so that no test can kill them. These are judged
once, in equivalent_mutants.toml, and don't count.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from measuring import RESULTS, save, show

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))  # before what is installed
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # for the tools that tests share

from small_mistakes import RULES, Mutation, mutations_of, swapped_arguments
from tools import ROOT

JUDGED = Path(__file__).parent / "equivalent_mutants.toml"
IMPORT = "(the import of the tests)"
CONTEXT = 30  # letters of what stays the same, before and after a change


@dataclass(frozen=True)
class Room:
    """Modules and their tests, as patterns in src and tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


def files(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names.split())


ROOMS = {
    "attention": Room(
        files("attnlib", "masks functional attention cache")
        + files("attnlib", "_attention_checks _projection"),
        files("attnlib", "test_masks test_attention test_attention_refusals")
        + files("attnlib", "test_attention_special test_contributions test_cache"),
    ),
    "model": Room(
        files("attnlib", "blocks norms positions model/*"),
        files("attnlib", "test_blocks test_norms test_model test_descriptions test_gpt")
        + files("attnlib", "test_generation test_positions"),
    ),
    "interop": Room(files("attnlib", "interop/*"), files("attnlib", "test_interop*")),
    "training": Room(
        files("attncourse", "training/* tasks/*") + files("attnlib", "patterns pattern_sums"),
        files("attncourse", "test_baselines test_changed_world test_concord")
        + files("attncourse", "test_names test_same_bits test_sweeps test_tasks test_training*")
        + files("attnlib", "test_patterns"),
    ),
    "exercises": Room(
        files("attncourse", "checking/* lessons/l*/*"), files("attncourse/lessons", "test_*")
    ),
    "doctor": Room(files("attndoctor", "**/*"), files("attndoctor", "test_*")),
    "plotting": Room(
        files("attnlib", "plotting/*") + files("attncourse/lessons", "l*/figures/*"),
        files("attnlib/plotting", "test_*") + files("attncourse/lessons", "l*/test_*"),
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: which tests failed, which ran, and what they took."""

    killers: list[str]
    cases: list[str]
    seconds: float  # of the processor


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Watch:
    """Pytest's hooks in a fork: which tests run, in which order, and what becomes of them."""

    log: Path
    thorough: bool
    kills: Counter[str]
    left_out: set[str]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Have Hypothesis draw the same examples each time, and only look whether one fails."""
        settings.register_profile(
            "kills", settings.get_profile("course"), derandomize=True, database=None,
            phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        settings.load_profile("kills")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._runs(item)]
        items.sort(key=lambda item: -self.kills[item.nodeid])

    def _runs(self, item: pytest.Item) -> bool:
        is_thorough = item.get_closest_marker("thorough") and not self.thorough
        opens_a_browser = "playwright" in item.fixturenames
        return not (is_thorough or opens_a_browser or item.nodeid in self.left_out)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note("start", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note("failed", report.nodeid)

    def _note(self, what: str, test: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{what}\t{test}\n")


@dataclass
class Forks:
    """One process for each mutant, some of them at the same time; they share what stands here."""

    tests: list[str]
    thorough: bool
    processes: int
    folder: Path  # for what the forks report
    first: bool = False  # stop at the first test that kills
    limit: int = 3600  # seconds of processor time a mutant
    kills: Counter[str] = field(default_factory=Counter)
    left_out: set[str] = field(default_factory=set)
    running: dict[int, Mutation | None] = field(default_factory=dict)

    def outcomes(self, mutants: list[Mutation | None]) -> Iterator[tuple[Mutation | None, Outcome]]:
        """Yield what becomes of each mutant, as soon as it is known; None changes nothing."""
        for mutant in mutants:
            if len(self.running) == self.processes:
                yield self._next()
            self._start(mutant)
        while self.running:
            yield self._next()

    def _start(self, mutant: Mutation | None) -> None:
        process = os.fork()
        if process:
            self.running[process] = mutant
            return
        try:
            os.setpgrp()
            resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit))
            signal.alarm(10 * self.limit)  # of the clock on the wall: a test may wait forever
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            if mutant:
                _import_mutated(mutant)
            os._exit(self._run_tests())
        finally:
            os._exit(3)

    def _run_tests(self) -> int:
        watch = Watch(self._log(os.getpid()), self.thorough, self.kills, self.left_out)
        # With asserts rewritten, pytest loads l06/leak_test.py by itself: without the mutant.
        flags = ["-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider"]
        flags += ["-x"] if self.first else []
        return int(pytest.main([*flags, *self.tests], plugins=[watch]))

    def _next(self) -> tuple[Mutation | None, Outcome]:
        """Wait for one of the forks."""
        process, status, usage = os.wait3(0)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)  # what its tests started and left
        mutant = self.running.pop(process)
        killers, started = self._read(self._log(process))
        if os.WIFSIGNALED(status) or (status and not killers):
            killers.append(started[-1] if started else IMPORT)
        killers = list(dict.fromkeys(killers))
        if mutant:
            self.kills.update(killers)
        return mutant, Outcome(killers, started, usage.ru_utime + usage.ru_stime)

    def _read(self, log: Path) -> tuple[list[str], list[str]]:
        """Return the tests that failed, and all that started."""
        if not log.exists():
            return [], []
        lines = [line.split("\t", 1) for line in log.read_text(encoding="utf-8").splitlines()]
        log.unlink()
        return tuple([test for what, test in lines if what == w] for w in ("failed", "start"))

    def _log(self, process: int) -> Path:
        return self.folder / str(process)


def _import_mutated(mutant: Mutation) -> None:
    """Have Python's import take the mutated tree for the file."""
    unchanged = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> object:
        if Path(loader.path) == mutant.path:
            return compile(mutant.tree, loader.path, "exec")
        return unchanged(loader, name)

    SourceFileLoader.get_code = get_code


def import_others(tests: list[str]) -> None:
    """Import what the tests import from elsewhere, which no mutant changes."""
    reading, writing = os.pipe()
    if not os.fork():
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        pytest.main(["-q", "-p", "no:cacheprovider", "--collect-only", *tests])
        names = [name for name, module in list(sys.modules.items()) if _is_elsewhere(module)]
        with open(writing, "w", encoding="utf-8") as pipe:
            pipe.write("\n".join(names))
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        names = pipe.read().split()
    os.wait()
    for name in names:
        with suppress(Exception):  # one that only its own package can import
            import_module(name)


def _is_elsewhere(module: object) -> bool:
    path = getattr(module, "__file__", None)
    return bool(path) and (ROOT not in Path(path).parents or "site-packages" in path)


def all_mutations(room: Room) -> list[Mutation]:
    files = sorted({path for pattern in room.modules for path in (ROOT / "src").glob(pattern)})
    rules = (*RULES, swapped_arguments)
    return [mutation for file in files for mutation in mutations_of(file, rules)]


def module_of(mutation: Mutation) -> str:
    inside = mutation.path.relative_to(ROOT / "src").with_suffix("")
    return ".".join(inside.parts).removesuffix(".__init__")


def change_of(mutation: Mutation) -> str:
    """What becomes of what, without most of what stays the same."""
    before, after = mutation.texts
    start = max(0, _same(before, after) - CONTEXT)
    end = max(0, _same(before[start:][::-1], after[start:][::-1]) - CONTEXT)
    parts = (text[start : len(text) - end] for text in (before, after))
    return " -> ".join("..." * (start > 0) + part + "..." * (end > 0) for part in parts)


def _same(first: str, second: str) -> int:
    """Count the letters at their beginnings that two texts share."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def draw(room: Room, seed: int, number: int) -> list[Mutation]:
    """Draw among all mutations of a room, but for those that are judged to be equivalent."""
    judged = tomllib.loads(JUDGED.read_text(encoding="utf-8"))
    found = all_mutations(room)
    drawn = random.Random(seed).sample(found, min(number, len(found)))
    return [m for m in drawn if change_of(m) not in judged.get(module_of(m), {})]


def function_of(test: str) -> str:
    return test.partition("[")[0].removeprefix("tests/")


def cover(killed: dict[Mutation, set[str]]) -> list[tuple[str, int]]:
    """Choose tests that kill all that is killed: always the one that kills most of the rest."""
    left, chosen = dict(killed), []
    while left:
        counts = Counter(test for tests in left.values() for test in tests)
        best = max(counts, key=lambda test: (counts[test], test))
        chosen.append((best, counts[best]))
        left = {mutant: tests for mutant, tests in left.items() if best not in tests}
    return chosen


def tests_of(room: Room) -> list[str]:
    found = {path for pattern in room.tests for path in (ROOT / "tests").glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def lines_of(tests: list[str]) -> int:
    """Count the lines of tests; of helpers that they share, none."""
    paths = [ROOT / test for test in tests]
    files = {f for path in paths for f in (path.rglob("test_*.py") if path.is_dir() else [path])}
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def show_tests(killed: dict[Mutation, set[str]], functions: set[str]) -> None:
    """Print what each test function kills, and what no other does."""
    kills = Counter(test for tests in killed.values() for test in tests)
    alone = Counter(test for tests in killed.values() if len(tests) == 1 for test in tests)
    rows = [[test, str(n), str(alone[test] or "")] for test, n in kills.most_common()]
    show("Tests", ["test", "kills", "no other does"], rows)
    idle = sorted(functions - set(kills))
    print(f"{len(idle)} of {len(functions)} test functions kill none:", *idle, sep="\n  ")


def run_all(
    forks: Forks, mutants: list[Mutation], *, first: bool
) -> tuple[Outcome, dict[Mutation, Outcome]]:
    """Run the tests without a mutant, then on each; leave out those that fail anyway."""
    [(_, unchanged)] = forks.outcomes([None])
    if unchanged.killers:
        print("left out, since they fail without a mutant, too:", *unchanged.killers, sep="\n  ")
    forks.left_out = set(unchanged.killers)
    forks.first = first
    forks.limit = int(3 * unchanged.seconds) + 20
    outcomes = {}
    for mutant, outcome in forks.outcomes(mutants):
        outcomes[mutant] = outcome
        print(f"\r{len(outcomes)} of {len(mutants)} mutants", end="", flush=True)
    print()
    return unchanged, outcomes


def keep(room: str, name: str, record: dict) -> None:
    """Write a record beside those of other rooms, and of this room under other names."""
    path = RESULTS / "kills-cpu.json"
    rooms = json.loads(path.read_text(encoding="utf-8"))["rooms"] if path.exists() else {}
    rooms.setdefault(room, {})[name] = record
    save("kills", "cpu", {"rooms": rooms}, [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("--seed", type=int, default=0, help="what draws the mutants")
    parser.add_argument("--mutants", type=int, default=100, help="how many are drawn")
    parser.add_argument("--tests", nargs="+", help="files or folders, instead of the room's")
    parser.add_argument("--first", action="store_true", help="stop at the first test that kills")
    parser.add_argument("--cover", action="store_true", help="choose few tests that kill as many")
    parser.add_argument("--thorough", action="store_true", help="also what only it runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", metavar="NAME", help="keep the counts under this name")
    arguments = parser.parse_args()
    if arguments.cover and arguments.first:
        parser.error("--cover needs all tests that kill a mutant, and --first stops at one")
    os.chdir(ROOT)
    room = ROOMS[arguments.room]
    tests = arguments.tests or tests_of(room)
    mutants = draw(room, arguments.seed, arguments.mutants)
    import_others(tests)

    with tempfile.TemporaryDirectory() as folder:
        forks = Forks(tests, arguments.thorough, arguments.processes, Path(folder))
        unchanged, outcomes = run_all(forks, mutants, first=arguments.first)

    names = {m: f"{module_of(m)}:{m.place.lineno}: {change_of(m)}" for m in mutants}
    survivors = [names[mutant] for mutant in mutants if not outcomes[mutant].killers]
    functions = {function_of(case) for case in unchanged.cases}
    record = {
        "seed": arguments.seed,
        "mutants": len(mutants),
        "killed": len(mutants) - len(survivors),
        "lines": lines_of(tests),
        "functions": len(functions),
        "cases": len(unchanged.cases),
        "CPU seconds": unchanged.seconds,
    }
    show(f"Room {arguments.room}", list(record), [[f"{value:.5g}" for value in record.values()]])
    print("survivors:", *survivors, sep="\n  ")
    if not arguments.first:
        killed = {m: set(map(function_of, o.killers)) for m, o in outcomes.items() if o.killers}
        for mutant, killers in killed.items():
            print(names[mutant], *sorted(killers), sep="\n  ")
        show_tests(killed, functions)
        if arguments.cover:
            rows = [[test, str(number)] for test, number in cover(killed)]
            show("A cover", ["test", "kills of what is left"], rows)
    if arguments.keep:
        keep(arguments.room, arguments.keep, record | {"survivors": survivors})


if __name__ == "__main__":
    main()
