"""Checks of L02, Embeddings and Positions."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
