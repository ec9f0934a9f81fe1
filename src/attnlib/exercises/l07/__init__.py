"""Checks of L07, Assembling a GPT."""

from attnlib.exercises._lesson import publish

__all__, __getattr__ = publish(__name__)
