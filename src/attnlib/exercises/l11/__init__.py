"""Checks of L11, The Heads of GPT."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
