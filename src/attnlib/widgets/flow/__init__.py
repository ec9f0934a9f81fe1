"""The widget Flow."""
