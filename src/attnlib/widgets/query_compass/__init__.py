"""The widget QueryCompass."""
