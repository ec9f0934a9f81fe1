"""Checks of L10, Making Attention Fast."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
