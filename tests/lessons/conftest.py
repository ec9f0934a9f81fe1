"""The executed lessons, which all processes of a run share."""

from tools.course import build_folder, run_notebook

__all__ = ["build_folder", "run_notebook"]
