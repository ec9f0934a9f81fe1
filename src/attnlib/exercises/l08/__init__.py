"""Checks of L08, What Heads Learn."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
