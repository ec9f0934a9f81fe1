"""What commands print."""

import os
import sys


def say(text: str) -> None:
    """Print text to whoever still reads: `head`, for one, has soon seen enough and goes."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
