"""Checks of L05, Normalization and Residuals."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
