"""The widget MaskPainter."""
