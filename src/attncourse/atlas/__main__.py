"""Score the heads of a model: `python -m attncourse.atlas PATH --text FILE -o atlas.html`.

The exit status is 0 if an atlas was made, 2 if it couldn't be (because of the command, of a file,
of the model or of a text), 130 if it was interrupted.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from attncourse.atlas._build import build_atlas
from attndoctor.support.printing import echo

INTERRUPTED = 130  # as a shell says of what Ctrl-C has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = _parser()
    args = parser.parse_args(arguments)
    found = [(file, _paragraphs(file, parser)) for file in args.text]
    texts = [text for _, paragraphs in found for text in paragraphs]
    places = [f"paragraph {i + 1} of {file}" for file, own in found for i in range(len(own))]
    try:
        longest = sys.maxsize if args.output is None else _most_shown(args.output, args.text)
        quiet = args.quiet
        atlas = build_atlas(args.model, texts, name=args.name, progress=not quiet, longest=longest)
        if (pieces := len(atlas.texts)) > len(texts):
            most = max(map(len, atlas.texts))
            echo(f"{len(texts)} paragraphs, cut into {pieces} texts of at most {most:,} tokens")
        echo(repr(atlas))
        if args.output is not None:
            atlas.save_html(args.output)
            echo(f"saved: {args.output}, {Path(args.output).stat().st_size:,} bytes")
    except (TypeError, ValueError, ImportError, OSError) as error:
        why = re.sub(r"\btexts\[(\d+)\]", lambda text: places[int(text[1])], str(error))
        print(fill(why, 100, break_long_words=False, break_on_hyphens=False), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attncourse.atlas",
        description="Score every head of a model of transformers on texts of yours.",
        epilog="Exit status: 0 an atlas was made; 2 it couldn't be, because of the command, of a "
        "file, of the model or of a text; 130 it was interrupted.",
    )
    parser.add_argument("model", metavar="PATH", help="the model's folder, or its name on the hub")
    parser.add_argument(
        "--text", metavar="FILE", nargs="+", action="extend", required=True,
        help="what it is to read; paragraphs, with an empty line between them, are texts of their "
        "own, and the first is shown; one too long for the model is cut into several",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", help="write all heads into this file, for a browser"
    )
    parser.add_argument("--name", help="what the model is called (its own name if left out)")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    return parser


def _most_shown(output: str, texts: Sequence[str]) -> int:
    """Return how many tokens a page can show, or raise at once if none can be written there."""
    from attncourse.widgets.head_atlas.state import MOST_TOKENS  # only a page needs the widgets

    path = Path(output)
    if path.is_dir():
        raise ValueError(f"--output must be a file, got the folder {output!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"--output must be in a folder that is there, got {output!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"--output must be a place where one may write, got {output!r}")
    if path.exists() and any(path.samefile(text) for text in texts):
        raise ValueError(f"--output must be another file than what is read, got {output!r}")
    return MOST_TOKENS


def _paragraphs(file: str, parser: argparse.ArgumentParser) -> list[str]:
    try:
        text = Path(file).read_text("utf-8-sig")  # without the mark that some editors begin with
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"{file} can't be read as text: {error}")
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


if __name__ == "__main__":
    sys.exit(main())
