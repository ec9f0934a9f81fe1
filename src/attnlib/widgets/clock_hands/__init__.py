"""The widget ClockHands."""
