"""Processes of one run share what one of them made."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from filelock import Timeout
from tools import ROOT
from tools.course import once

CRASH = """
import os, sys
from pathlib import Path
from tools.course import once
once(Path(sys.argv[1]), lambda: os._exit(1))
"""


def test_whoever_comes_first_makes_it_for_all(tmp_path):
    made = []

    def make():
        made.append(1)
        return "it"

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(once, tmp_path / "it", make) for _ in range(4)]
    assert [answer.result() for answer in asked] == ["it"] * 4
    assert made == [1]


def test_whoever_does_not_want_to_wait_goes_on(tmp_path):
    started, finished = Event(), Event()

    def make():
        started.set()
        return finished.wait(60)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(once, tmp_path / "it", make)
        started.wait(60)
        with pytest.raises(Timeout):
            once(tmp_path / "it", make, wait=False)
        finished.set()
        assert first.result()
    assert once(tmp_path / "it", make, wait=False)


def test_nobody_waits_for_a_process_that_crashed(tmp_path):
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "book/extensions")])
    environment = os.environ | {"PYTHONPATH": paths}
    command = [sys.executable, "-c", CRASH, tmp_path / "it"]
    assert subprocess.run(command, env=environment, check=False).returncode == 1
    assert once(tmp_path / "it", lambda: "made after all", wait=False) == "made after all"
