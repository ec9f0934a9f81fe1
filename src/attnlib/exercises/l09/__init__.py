"""Checks of L09, How Many Heads?."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
