"""Checks of L09, How Many Heads?."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
