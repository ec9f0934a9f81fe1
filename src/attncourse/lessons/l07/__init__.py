"""Checks of L07, Assembling a GPT."""

from attncourse.checking.lesson import publish

__all__, __getattr__ = publish(__name__)
