"""Checks of L03, The Attention Mechanism."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
