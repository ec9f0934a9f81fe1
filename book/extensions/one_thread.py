"""Lessons are executed with one thread, unless the environment says otherwise.

Their tensors are small. On a machine that is busy with something else, a second thread makes a
lesson several times slower, because each of the two keeps waiting for the other.
"""

import os


def use_one_thread():
    """Tell the kernels that this process will start."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def setup(app):
    """Run before any kernel starts."""
    use_one_thread()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
