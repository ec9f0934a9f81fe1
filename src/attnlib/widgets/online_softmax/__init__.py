"""The widget OnlineSoftmax."""
