"""Illustrations of lesson 4: several heads, what each reads and what each adds."""

from attnlib.plotting.l04.flow import plot_flow
from attnlib.plotting.l04.head_contributions import plot_head_contributions
from attnlib.plotting.l04.origin import plot_origin
from attnlib.plotting.l04.sensitivity import plot_sensitivity

__all__ = ["plot_flow", "plot_head_contributions", "plot_origin", "plot_sensitivity"]
