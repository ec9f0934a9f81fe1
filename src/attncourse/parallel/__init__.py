"""Attention over several processes, on PyTorch's own engine.

Heads are what attention is split by: each works without the others until W_o adds them up. So each
process keeps some heads of every layer, and the sum over all heads is the one thing that is
exchanged (Shoeybi et al. 2019, section 3). A comparison with a single process::

    python -m attncourse.parallel --processes 2
"""

from attncourse.parallel.heads import split_heads_over
from attncourse.parallel.processes import run_in_processes
from attncourse.parallel.report import Report, Share
from attncourse.parallel.tensor_parallel import compare_models

__all__ = [
    "Report",
    "Share",
    "compare_models",
    "run_in_processes",
    "split_heads_over",
]
