"""Checks of L06, The Causal Mask."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
