"""What `diagnose` says of five libraries, and the same without it: runs the code of book/found.md.

    pip install ...              # the libraries, as the page says
    python benchmarks/found.py   # half a minute on one core

Each block of Python runs by itself. What it printed is written below it, on the page.
"""

import argparse
import io
import re
import sys
import textwrap
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from measuring import save

PAGE = Path(__file__).parents[1] / "book" / "found.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
LIBRARIES = (
    "torch", "x-transformers", "vit-pytorch", "monai", "open_clip_torch", "transformers",
)  # fmt: skip
WIDTH = 64  # of lines that need no scrolling on the page


def printed(code: str) -> str:
    """Return what code prints, in lines that fit the page; of an error, its last line."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, {})
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return "".join(textwrap.fill(line, WIDTH) + "\n" for line in said.getvalue().splitlines())


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    try:
        versions = {name: version(name) for name in LIBRARIES}
    except PackageNotFoundError as missing:
        sys.exit(f"{missing.name} isn't installed: book/found.md has the lines that install it")
    torch.set_num_threads(1)
    page = PAGE.read_text(encoding="utf-8")
    runs = [{"code": code, "printed": printed(code)} for code, _ in EXAMPLE.findall(page)]
    blocks = (f"```python\n{run['code']}```\n\n```text\n{run['printed']}```" for run in runs)
    PAGE.write_text(EXAMPLE.sub(lambda _: next(blocks), page), encoding="utf-8")
    save("found", "cpu", {"versions": versions, "runs": runs}, [])


if __name__ == "__main__":
    main()
