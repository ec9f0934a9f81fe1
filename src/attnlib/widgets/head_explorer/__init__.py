"""The widget HeadExplorer."""
