"""Score the heads of a model: `python -m attnlib.atlas PATH --text FILE -o atlas.html`.

The exit status is 0 if an atlas was made, 2 if it couldn't be (because of the command, of a file,
of the model or of a text), 130 if it was interrupted.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from attnlib._saying import say
from attnlib.atlas._atlas import table_of
from attnlib.atlas._of import of

INTERRUPTED = 130  # as a shell says of what Ctrl-C has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    texts = [text for file in asked.text for text in _paragraphs(file, parser)]
    try:
        atlas = of(asked.model, texts, name=asked.name, progress=not asked.quiet)
        say(table_of(atlas, asked.best))
        if asked.output:
            atlas.save_html(asked.output)
            say(f"saved: {asked.output}, {Path(asked.output).stat().st_size:,} bytes")
    except (TypeError, ValueError, ImportError, OSError) as error:
        print(fill(str(error), 100), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attnlib.atlas",
        description="Score every head of a model of transformers on texts of yours.",
        epilog="Exit status: 0 an atlas was made; 2 it couldn't be, because of the command, of a "
        "file, of the model or of a text; 130 it was interrupted.",
    )
    parser.add_argument("model", metavar="PATH", help="the model's folder, or its name on the hub")
    parser.add_argument(
        "--text", metavar="FILE", nargs="+", required=True,
        help="what it is to read; paragraphs, with an empty line between them, are texts of their "
        "own, and the first is the one that is shown",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", help="write all heads into this file, for a browser"
    )
    parser.add_argument("--name", help="what the model is called (its own name if left out)")
    parser.add_argument(
        "--best", type=_positive, default=3, help="heads per pattern (3 if left out)"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    return parser


def _positive(written: str) -> int:
    """Return a whole number of at least 1, or raise for the parser."""
    if not written.isdecimal() or int(written) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {written}")
    return int(written)


def _paragraphs(file: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the paragraphs of a file."""
    try:
        text = Path(file).read_text("utf-8-sig")  # without the mark that some editors begin with
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"{file} can't be read as text: {error}")
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


if __name__ == "__main__":
    sys.exit(main())
