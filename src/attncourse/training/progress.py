"""The bar that shows how far a training is, and Ctrl-C between its steps."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from attncourse._bar import opened_bar


@contextmanager
def progress_bar(
    name: str, start: int, steps: int, wanted: bool
) -> Iterator[Callable[[float], None]]:
    """Give what shows a step's loss in a progress bar, if one is wanted."""
    with opened_bar(wanted, total=steps, initial=start, desc=name, unit="step") as bar:

        def show(loss: float) -> None:
            if bar is not None:
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                bar.update()

        yield show


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed; the first press is only noted.

    So a step isn't left half done. The training ends soon by itself, or is ended on leaving.
    Pressed twice, it ends things at once, as always.
    """
    if threading.current_thread() is not threading.main_thread():  # no other gets an interrupt
        yield lambda: False
        return
    noted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if noted:
        raise KeyboardInterrupt
