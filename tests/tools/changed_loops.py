"""Kernels of a changed world begin with this: loops written out on a page begin otherwise, too.

`attnlib.training` changes its own first weights. A page's loop begins where the page makes its
optimizer, so there the parameters are changed. IPython runs this file (PYTHONSTARTUP).
"""

import sys

import torch

from attnlib.training.changed_world import changed

_begin = torch.optim.Optimizer.__init__


def _begin_otherwise(self, *arguments, **options):
    _begin(self, *arguments, **options)
    if sys._getframe(2).f_globals["__name__"] == "__main__":  # who calls Adam's __init__
        for group in self.param_groups:
            changed(group["params"])


torch.optim.Optimizer.__init__ = _begin_otherwise
