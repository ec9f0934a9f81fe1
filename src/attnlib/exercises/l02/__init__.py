"""Checks of L02, Embeddings and Positions."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
