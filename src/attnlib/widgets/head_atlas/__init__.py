"""The widget HeadAtlas."""
