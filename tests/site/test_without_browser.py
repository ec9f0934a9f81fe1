"""Pages that nobody looked at must not look fine."""

import os
import subprocess
import sys

import pytest
from tools import ROOT

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("ci", "status", "word"), [("", 0, "NO PAGE WAS OPENED"), ("true", 1, "no Chromium found")]
)
def test_a_missing_browser_is_told_and_fails_under_ci(ci, status, word):
    one_test = "tests/site/test_pages.py::test_each_fault_of_a_page_is_noticed"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", one_test]
    # Plugins would be loaded for longer than the test takes.
    environment = os.environ | {"CI": ci, "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == status, result.stdout
    assert word in result.stdout
    assert "apt-get install chromium" in result.stdout
