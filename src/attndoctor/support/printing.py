"""Printing, for commands."""

import os
import sys


def echo(text: str) -> None:
    """Print a line; ignore a closed pipe, as of `... | head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
