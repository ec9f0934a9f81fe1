"""Checks of L01, Tokens."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
