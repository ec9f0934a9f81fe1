"""Attention over several processes, with the engines that PyTorch has for it.

Heads are what attention is split by: each works without the others until W_o adds them up. So each
process keeps some heads of every layer, and the sum over all heads is the one thing that is
exchanged (Shoeybi et al. 2019, section 3)::

    from torch.distributed.device_mesh import init_device_mesh
    from attncourse.parallel import split_heads_over

    model = split_heads_over(model, init_device_mesh("cpu", (2,)))  # in each of two processes

Two comparisons with a single process run on any machine, each by one command::

    python -m attncourse.parallel tensor --processes 2    heads and hidden neurons are split
    python -m attncourse.parallel data --processes 2      each batch is split

The exit status is 0 if what comes out is equal, 1 if it isn't, 2 if the command can't be followed
or a process has ended too soon, 130 if it was interrupted. Both also run below ``torchrun``.
"""

from attncourse.parallel.data_parallel import compare_trainings
from attncourse.parallel.heads import split_heads_over
from attncourse.parallel.processes import ProcessEndedError, together
from attncourse.parallel.reports import ModelReport, ModelShare, TrainingReport, TrainingShare
from attncourse.parallel.tensor_parallel import compare_models
from attncourse.parallel.traffic import Sent, Traffic

__all__ = [
    "ModelReport",
    "ModelShare",
    "ProcessEndedError",
    "Sent",
    "Traffic",
    "TrainingReport",
    "TrainingShare",
    "compare_models",
    "compare_trainings",
    "split_heads_over",
    "together",
]
