"""A plugin of pytest that leaves out what asks the built site: see made_by_hand.py."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not {"site", "site_build"} & {*item.fixturenames}]
