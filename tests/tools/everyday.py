"""What `pytest` alone asks, and what it leaves to `pytest --thorough`.

Everything takes a quarter of an hour or more on two cores: nobody waits for that after each
change. So `pytest` alone asks most of the packages, every lesson and the site's build; of what
opens a browser, it asks what is marked `everyday`; and nothing that is marked `thorough`. It
executes no lesson again that the reader's builds, or it, have executed as it is now. Naming files,
or choosing by `-k`, `-m` or what failed last, asks all of that.
"""

import pytest


def asks_everything(config) -> bool:
    """Return whether nothing is left out: because that's wanted, or because tests were chosen."""
    option = config.option
    are_named = config.args_source is pytest.Config.ArgsSource.ARGS
    wants_failed = getattr(option, "lf", False)  # there is no such option without a cache
    have_failed = wants_failed and config.cache.get("cache/lastfailed", {})  # else `--lf` is idle
    return bool(option.thorough or are_named or option.keyword or option.markexpr or have_failed)


def is_thorough(item) -> bool:
    """Return whether a test is for `--thorough`."""
    if item.get_closest_marker("thorough"):
        return True
    everyday = item.get_closest_marker("everyday")
    if everyday is None:
        return "playwright" in item.fixturenames  # which opens all browsers
    [case] = everyday.args or [""]
    return case not in item.name


def mark_all(items) -> None:
    """Mark all that is for `--thorough`, so that `-m` finds it."""
    for item in items:
        if is_thorough(item):
            item.add_marker("thorough")


def leave_out(config, items) -> None:
    """Take out of the items what is for `--thorough`."""
    left_out = [item for item in items if is_thorough(item)]
    items[:] = [item for item in items if not is_thorough(item)]
    config.hook.pytest_deselected(items=left_out)


def tell(terminalreporter) -> None:
    """Say that not everything was asked."""
    if not asks_everything(terminalreporter.config):
        terminalreporter.section("NOT EVERYTHING WAS ASKED", sep="!", yellow=True, bold=True)
        terminalreporter.line(
            "Lessons that stand in the cache as they are now were not executed again. Tests were "
            "left out, of pages and widgets in a browser, of further builds, diagnose, compilers "
            "and processes: `pytest --thorough` asks them, too."
        )
