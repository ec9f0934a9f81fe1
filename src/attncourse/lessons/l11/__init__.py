"""Checks of L11, The Heads of GPT."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
