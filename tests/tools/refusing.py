"""What tests of bad input share."""

from collections.abc import Callable, Iterable

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
