"""Every head of a model of your own, scored and shown."""

from attnlib.atlas._atlas import Atlas, Head, PatternScores

__all__ = ["Atlas", "Head", "PatternScores"]
