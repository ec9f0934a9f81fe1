"""The widget HeadMute."""
