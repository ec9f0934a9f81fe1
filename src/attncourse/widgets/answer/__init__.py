"""The widget Answer."""
