"""How the programs here measure: interleaved in one process, as ratios, with their spread.

Candidates take turns, so that whatever slows the machine slows all of them, and each round gives a
ratio to that round's floor. Of several measurements the count, the median and the middle half are
shown and kept, as results/README.md says.
"""

import ctypes
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, is_dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from textwrap import indent

import torch
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
WIDTH = 120  # of lines in them


@dataclass(frozen=True)
class Summary:
    """Several measurements of one thing: how many, their median and the middle half of them."""

    count: int
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Summary":
        measured = list(values)
        quartiles = statistics.quantiles(measured, n=4) if len(measured) > 1 else measured * 3
        low, median, high = quartiles
        return cls(len(measured), median, low, high)

    @classmethod
    def of_fields(cls, runs: Sequence[object]) -> "dict[str, Summary]":
        """Summarize runs of one dataclass, field by field; None, for never, isn't counted."""
        columns = {name: [vars(run)[name] for run in runs] for name in vars(runs[0])}
        reached = {name: [x for x in of if x is not None] for name, of in columns.items()}
        return {name: cls.of(values) for name, values in reached.items() if values}

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Goal:
    """What was wanted of a ratio, and whether it was reached."""

    what: str
    found: float
    wanted: float

    @property
    def verdict(self) -> str:
        if self.found <= self.wanted:
            return "met"
        if not self.wanted:
            return "missed"
        return f"missed by {self.found / self.wanted - 1:.0%}"


def take_turns(
    candidates: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Run every candidate once a round, after a first round that doesn't count; return seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for measured in [False] + [True] * rounds:
        for name, run in candidates.items():
            start = clock()
            run()
            if measured:
                seconds[name].append(clock() - start)
    return seconds


def ratios(seconds: Mapping[str, list[float]], floor: str) -> dict[str, Summary]:
    """Compare each candidate with the floor, round by round."""
    return {
        name: Summary.of(a / b for a, b in zip(own, seconds[floor], strict=True))
        for name, own in seconds.items()
    }


def p95(times: list[float]) -> float:
    """Return the time that 95% of some don't exceed."""
    return sorted(times)[math.ceil(0.95 * len(times)) - 1]


def clock_of(device: str, threads: int) -> Callable[[], float]:
    """Return the clock that is fair: processor time on one thread, else the wall's."""
    if device == "cuda":

        def synchronized() -> float:
            torch.cuda.synchronize()
            return time.perf_counter()

        return synchronized
    return time.process_time if threads == 1 else time.perf_counter


def peak_bytes(run: Callable[[], object], device: str) -> int:
    """Return how much memory a call holds at its peak beyond what was there before (Linux)."""
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    ctypes.CDLL(None).malloc_trim(0)  # else memory freed before would be used again, unseen
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far: proc(5)
    before = _resident("VmRSS")
    run()
    return _resident("VmHWM") - before


def in_a_fresh_process(program: str, *arguments: str) -> float:
    """Run a program of this folder with arguments; return the one number that it prints.

    Memory is measured there, because an allocator that was used before hides what a call needs.
    Tensors that are freed go back to the system at once: glibc would keep some of them for later,
    and the peak would depend on the order of sizes, by as much as four [T, d] tensors.
    """
    command = [sys.executable, program, *arguments]
    settings = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(64 * 1024)}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def hardware(device: str) -> dict[str, str]:
    """Say on what and when was measured."""
    names = {"python": platform.python_version(), "torch": torch.__version__}
    names["processor"] = _processor()
    if device == "cuda":
        names["gpu"] = torch.cuda.get_device_name()
    return names | {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table."""
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


def show_goals(goals: list[Goal]) -> None:
    """Print what was wanted beside what was found."""
    rows = [[g.what, f"{g.found:.3g}", f"{g.wanted:g}", g.verdict] for g in goals]
    show("Goals", ["goal", "found", "at most", ""], rows)


def save(name: str, device: str, record: dict, goals: list[Goal]) -> None:
    """Write results/<name>-<device>.json and say so."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{device}.json"
    reached = {goal.what: [goal.found, goal.wanted] for goal in goals}
    whole = {"measured on": hardware(device)} | record | {"goals": reached}
    path.write_text(_filled(_plain(whole)) + "\n", encoding="utf-8")
    Console().print(f"written to benchmarks/results/{path.name}")


def _plain(value: object) -> object:
    """Return what JSON can hold: floats have four digits, a summary is a list."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Summary):
        value = astuple(value)
    elif is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _filled(value: object, name: str = "", width: int = WIDTH) -> str:
    """Return JSON whose lines are filled like those of a paragraph."""
    line = name + json.dumps(value)
    if len(line) < width or not isinstance(value, dict | list):
        return line
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    names = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else []
    values = value.values() if isinstance(value, dict) else value
    lines: list[str] = []
    for name_of_part, part in zip_longest(names, values, fillvalue=""):
        text = _filled(part, name_of_part, width - 2)
        filled = f"{lines[-1]}, {text}" if lines else "\n"
        if "\n" in filled or len(filled) >= width - 2:
            lines.append(text)
        else:
            lines[-1] = filled
    return f"{name}{opening}\n" + indent(",\n".join(lines), "  ") + f"\n{closing}"


def _resident(field: str) -> int:
    """Return a size in bytes from /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}: memory is measured on Linux only")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
