"""Checks of L08, What Heads Learn."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
