"""Processes that work together end together, and none is left behind."""

import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress

import pytest
from tools import several_processes
from tools.refusing import assert_refused

from attncourse.parallel import ProcessEndedError, together

pytestmark = pytest.mark.thorough


@pytest.fixture
def pids(tmp_path):
    """A file in which processes note themselves; after the test none of them lives."""
    file = tmp_path / "pids"
    yield file
    assert not left(file)


def left(file):
    """Return the processes that have noted themselves and live."""
    found = []
    for pid in file.read_text(encoding="utf-8").split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), 0)
            found.append(pid)
    return found


def test_each_returns_what_it_found():
    assert together(several_processes.rank_and_sum, 3, 10) == [(0, 60, 1), (1, 60, 1), (2, 60, 1)]


def test_one_alone():
    assert together(several_processes.rank_and_sum, 1, 10) == [(0, 10, 1)]


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("raise", ["process 1 raised", "ZeroDivisionError: by design"]),
        ("exit", ["process 1 ended with status 7"]),
        ("leave", ["process 1 ended with status 0 before its work was done"]),
        ("return a function", ["raised an error", "pickle"]),
        ("stop", ["process 0 raised", "imed out"]),
        ("sleep while the others are done", ["process 1 still wasn't done 2 seconds after"]),
    ],
)
def test_one_that_fails_ends_all(does, words, pids):
    assert_refused(
        lambda: together(several_processes.the_second, 2, does, str(pids), timeout=2),
        words,
        ProcessEndedError,
    )


def when_all_are_there(file, number, act):
    """Do something from another thread as soon as so many processes have noted themselves."""

    def wait():
        while not file.exists() or len(pids := file.read_text(encoding="utf-8").split()) < number:
            time.sleep(0.01)
        act([int(pid) for pid in pids])

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_one_that_is_killed_ends_all(name, pids):
    when_all_are_there(pids, 3, lambda them: os.kill(them[1], getattr(signal, name)))
    assert_refused(
        lambda: together(several_processes.the_second, 3, "sleep", str(pids)),
        ["was ended by", name, "before its work was done"],
        ProcessEndedError,
    )


def test_an_interrupt_ends_all(pids):
    main = threading.main_thread().ident
    when_all_are_there(pids, 2, lambda _: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        together(several_processes.the_second, 2, "sleep", str(pids))


def test_none_outlives_the_process_that_started_them(pids):
    starting = multiprocessing.get_context("forkserver").Process(
        target=several_processes.start_others, args=(str(pids),)
    )
    when_all_are_there(pids, 2, lambda _: starting.kill())
    starting.start()
    starting.join()
    assert starting.exitcode == -signal.SIGKILL
    for _ in range(6_000):  # a minute, where others need the processor
        if not left(pids):
            break
        time.sleep(0.01)
