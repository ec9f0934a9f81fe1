"""Texts that stand in a Markdown file beside the Python file that uses them."""

import re
from pathlib import Path


def read_texts(file: str) -> dict[str, str]:
    """Return what stands below each heading `# name`, given a module's `__file__`."""
    text = Path(file).with_suffix(".md").read_text(encoding="utf-8")
    sections = (part.partition("\n") for part in re.split("^# ", text, flags=re.MULTILINE)[1:])
    return {name: text.strip() for name, _, text in sections}


class Texts:
    """The texts beside a module, called by a heading and with what stands in a text."""

    def __init__(self, file: str) -> None:
        self._texts = read_texts(file)

    def __call__(self, heading: str, **facts: object) -> str:
        """Return the text below a heading."""
        return self._texts[heading].format(**facts)


def read_labels(file: str) -> dict[str, list[tuple[str, str]]]:
    """Return the entries `* Key: text` below each heading."""
    entry = re.compile(r"^\* (\w+):(?: (.+))?$", re.MULTILINE)
    return {name: entry.findall(text) for name, text in read_texts(file).items()}
