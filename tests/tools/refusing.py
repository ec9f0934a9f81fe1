"""What tests of bad input share."""

from collections.abc import Callable, Iterable
from functools import partial

import pytest


def assert_refused(
    call: Callable[[], object],
    words: Iterable[str],
    error: type[Exception] | tuple[type[Exception], ...] = (TypeError, ValueError),
) -> None:
    """Fail unless a call raises such an error, with all these words in its message."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message


def refusals(table: dict[type[Exception], dict[Callable, dict[str, list]]]) -> Callable[..., None]:
    """Return the test that each value of a table is refused by the name of its argument.

    The table has for each type of error: the call -> its argument -> values that it refuses.
    """
    rows = [
        pytest.param(
            error, name, partial(call, **{name: value}), id=f"{name}={type(value).__name__}"
        )
        for error, calls in table.items()
        for call, arguments in calls.items()
        for name, values in arguments.items()
        for value in values
    ]

    @pytest.mark.parametrize(("error", "named", "call"), rows)
    def test(error: type[Exception], named: str, call: Callable[[], object]) -> None:
        assert_named(error, named, call)

    return test


def assert_named(error: type[Exception], named: str, call: Callable[[], object]) -> None:
    """Fail unless a call raises such an error whose message begins with an argument's name."""
    with pytest.raises(error, match=rf"^(each (row )?of )?{named}\b"):
        call()
