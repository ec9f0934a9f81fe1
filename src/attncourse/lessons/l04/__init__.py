"""Checks of L04, Multi-Head Attention."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
