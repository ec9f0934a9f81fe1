"""What stands below a saved atlas: the texts it is of, when it was made and with what."""

from datetime import UTC, datetime
from html import escape
from importlib.metadata import version

import torch

from attncourse.widgets.head_atlas.atlas_protocol import ShownAtlas

LONGEST = 60  # tokens of a text that are listed


def notes_of(atlas: ShownAtlas) -> str:
    """Return the texts of an atlas and how it was made, as HTML."""
    texts = "".join(f"<li>{_beginning(text)}</li>" for text in atlas.texts)
    return (
        "<details><summary>The texts, token by token</summary>"
        f'<ol translate="no">{texts}</ol></details>'
        f"<p>Made on {datetime.now(UTC):%Y-%m-%d} with {', '.join(_tools(atlas))}.</p>"
    )


def _beginning(tokens: tuple[str, ...]) -> str:
    """Return how many tokens a text has and its first ones, each apart from its neighbors."""
    shown = "<wbr>|".join(f"<bdi>{escape(token)}</bdi>" for token in tokens[:LONGEST])
    more = " …" if len(tokens) > LONGEST else ""
    return f"{len(tokens):,} tokens: {shown}{more}"


def _tools(atlas: ShownAtlas) -> list[str]:
    tools = [f"attnlib {version('attnlib')}", f"PyTorch {torch.__version__}"]
    return tools if atlas.library is None else [*tools, f"{atlas.library} {version(atlas.library)}"]
