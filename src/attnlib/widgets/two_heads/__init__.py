"""The widget TwoHeads."""
