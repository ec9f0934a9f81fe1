"""What a test does without a program that it needs."""

import os

import pytest


def go_without(what: str):
    """Skip a test for which something isn't installed, or fail where CI is set."""
    give_up = pytest.fail if os.environ.get("CI") else pytest.skip
    give_up(what)
