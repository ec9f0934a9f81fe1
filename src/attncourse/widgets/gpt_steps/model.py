"""What GptSteps takes of a GPT: its form and its tokens, and what it refuses."""

from collections.abc import Iterable
from typing import Any

from attncourse.tasks import names as made_names
from attncourse.widgets._inputs import spec_of_one_block
from attnlib.checks import checked_texts, require_text
from attnlib.model import TransformerModel

WIDEST, MOST_HEADS, MOST_TOKENS, WIDEST_HIDDEN = 32, 8, 40, 8  # what can be seen on a phone
LONGEST = 16  # tokens of a name, the boundary before it among them
LOOP = (
    "the loop walks through one causal block with learned positions, heads with keys of their own, "
    "pre-norm and a feed-forward network, as attnlib.model.GPT makes it"
)


def checked_form(model: TransformerModel) -> dict[str, Any]:
    """Return the `spec` of a GPT that the loop can walk through, or raise if it can't."""
    spec = spec_of_one_block(model, LOOP)
    (block,) = spec["blocks"]
    if block["feed_forward"] is None:
        raise ValueError(f"model must have a feed-forward network, got d_ff=0: {LOOP}")
    h, V = block["num_heads"], spec["vocabulary_size"]
    norms = [*block["norms"], spec["final_norm"]]
    found = {
        "positions": (spec.get("positions", "learned"), "learned"),
        "causal": (spec["causal"], True),
        "readouts": (spec["readouts"], {"next": V}),
        "num_kv_heads": (block["num_kv_heads"], h),
        "norm_position": (block["norm_position"], "pre"),
        "residual": (block["residual"], True),
        "norms": (norms, norms[:1] * 3),
    }
    for name, (value, wanted) in found.items():
        if value != wanted:
            raise ValueError(f"model must have {name}={wanted!r}, got {value!r}: {LOOP}")
    _require_small(spec)
    return spec


def checked_tokens(spec: dict[str, Any], vocabulary: Iterable[str] | None, boundary: str) -> str:
    """Return the model's tokens, one character each, as one string, or raise."""
    V = spec["vocabulary_size"]
    if vocabulary is None:
        if len(made_names.vocabulary) != V:
            raise ValueError(
                f"vocabulary must say how the model's {V} tokens are written: those of "
                f"attncourse.tasks.names, which are taken if it is left out, are "
                f"{len(made_names.vocabulary)}"
            )
        vocabulary = made_names.vocabulary
    tokens = (
        list(vocabulary) if isinstance(vocabulary, str) else checked_texts("vocabulary", vocabulary)
    )
    if len(tokens) != V or len({*tokens}) != V or any(len(token) != 1 for token in tokens):
        raise ValueError(
            f"vocabulary must be {V} different characters, one per token of the model, got "
            f"{len(tokens)}: {tokens!r:.60}"
        )
    require_text("boundary", boundary)
    if boundary not in tokens:
        raise ValueError(
            f"boundary must be the token before a name, one of {''.join(tokens)!r}, "
            f"got {boundary!r}"
        )
    return "".join(tokens)


def checked_name(name: str, vocabulary: str, boundary: str, most: int) -> str:
    """Return a name in the model's own letters, or raise ValueError where it has none for it."""
    require_text("name", name)
    letters = [letter if letter in vocabulary else letter.lower() for letter in name]
    for letter, given in zip(letters, name, strict=True):
        if letter == boundary or letter not in vocabulary:
            raise ValueError(
                f"name must hold the model's letters, {vocabulary.replace(boundary, '')!r}, "
                f"got {given!r} in {name!r}"
            )
    if not 1 <= len(letters) <= most:
        raise ValueError(f"name must have 1 to {most} letters, got {len(letters)}")
    return "".join(letters)


def _require_small(spec: dict[str, Any]) -> None:
    (block,) = spec["blocks"]
    d = spec["d_model"]
    for name, size, most in (
        ("d_model", d, WIDEST),
        ("num_heads", block["num_heads"], MOST_HEADS),
        ("d_ff", block["feed_forward"]["d_ff"], WIDEST_HIDDEN * d),
        ("vocabulary_size", spec["vocabulary_size"], MOST_TOKENS),
    ):
        if size > most:
            raise ValueError(
                f"model must have {name} of at most {most}, got {size}: every number is drawn"
            )
    if spec["length"] < 2:
        raise ValueError(f"model must read 2 tokens at least, got length={spec['length']}")
