"""The executed lessons and the built sites, which all processes of a run share."""

from tools.course import (
    build_folder,
    run_notebook,
    site,
    site_address,
    site_build,
    small,
    small_address,
    warnings,
)

__all__ = [
    "build_folder",
    "run_notebook",
    "site",
    "site_address",
    "site_build",
    "small",
    "small_address",
    "warnings",
]
