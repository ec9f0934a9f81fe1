"""Checks of L06, The Causal Mask."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
