"""Attention over several processes, on PyTorch's own engine.

Heads are what attention is split by: each works without the others until W_o adds them up. So each
process keeps some heads of every layer, and the sum over all heads is the one thing that is
exchanged (Shoeybi et al. 2019, section 3). Two comparisons with a single process::

    python -m attncourse.parallel tensor --processes 2    heads and hidden neurons are split
    python -m attncourse.parallel data --processes 2      each batch is split
"""

from attncourse.parallel.data_parallel import compare_trainings
from attncourse.parallel.heads import split_heads_over
from attncourse.parallel.processes import run_in_processes
from attncourse.parallel.report import Report, Share
from attncourse.parallel.tensor_parallel import compare_models

__all__ = [
    "Report",
    "Share",
    "compare_models",
    "compare_trainings",
    "run_in_processes",
    "split_heads_over",
]
