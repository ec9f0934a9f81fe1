"""What programs print: lines, and numbers of things."""

import os
import sys


def echo(text: str) -> None:
    """Print a line; ignore a closed pipe, as of `... | head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere


def counted(number: int, thing: str) -> str:
    """Return a number with what it counts: "1 head", "1,024 tokens"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
