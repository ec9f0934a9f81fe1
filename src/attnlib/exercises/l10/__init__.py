"""Checks of L10, Making Attention Fast."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
