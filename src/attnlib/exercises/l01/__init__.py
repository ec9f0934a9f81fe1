"""Checks of L01, Tokens."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
