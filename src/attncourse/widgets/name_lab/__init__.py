"""The widget NameLab."""
