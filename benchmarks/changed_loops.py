"""Kernels of a changed world begin with this: loops written out on a page begin otherwise, too.

`attncourse.training` changes its own first weights. A page's loop begins where the page makes its
optimizer, so there the parameters are changed. IPython runs this file (PYTHONSTARTUP) among the
page's own names, so it leaves none behind.
"""


def _change_what_optimizers_get():
    import sys

    from torch.optim import Optimizer

    from attncourse.training.changed_world import perturb_if_asked

    begin = Optimizer.__init__

    def begin_otherwise(self, *arguments, **options):
        begin(self, *arguments, **options)
        if sys._getframe(2).f_globals["__name__"] == "__main__":  # who calls Adam's __init__
            for group in self.param_groups:
                perturb_if_asked(group["params"])

    Optimizer.__init__ = begin_otherwise


_change_what_optimizers_get()
del _change_what_optimizers_get
