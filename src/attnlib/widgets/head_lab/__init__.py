"""The widget HeadLab."""
