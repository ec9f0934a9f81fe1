"""The widget BuildABlock."""
