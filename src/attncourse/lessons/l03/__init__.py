"""Checks of L03, The Attention Mechanism."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
