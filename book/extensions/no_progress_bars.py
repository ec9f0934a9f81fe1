"""Lessons are executed without progress bars: what moves while a model trains isn't an output."""

import os


def hide_progress_bars():
    """Tell the kernels that this process will start, in tqdm's own way."""
    os.environ.setdefault("TQDM_DISABLE", "1")


def setup(app):
    """Run before any kernel starts."""
    hide_progress_bars()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
