"""What HeadLab takes of a reader's own model: its form, its weights, and what it refuses."""

from typing import Any

from attncourse.tasks import concord
from attncourse.widgets._inputs import (
    checked_numbers,
    float32_bytes,
    require_light,
    spec_of_one_block,
)
from attnlib.model import TaskSizes, TransformerModel

BROWSER = (
    "the browser has learned positions (no rotary ones), LayerNorm and RMSNorm, grouped heads, "
    "feed-forward networks with GELU, no dropout, and one block, whose heads are shown"
)


def checked_form(model: TransformerModel) -> dict[str, Any]:
    """Return the `spec` of a model that HeadLab can train, or raise if it can't."""
    spec = spec_of_one_block(model, BROWSER)
    (block,) = spec["blocks"]
    for name in ("attention_dropout", "dropout"):
        if block[name]:
            raise ValueError(
                f"model must have no dropout, got {name}={block[name]}: {BROWSER}; build it with "
                "dropout=0.0, its weights fit"
            )
    _require_known(spec)
    _require_concord(spec)
    return spec


def weights_of(model: TransformerModel) -> bytes:
    """Return all weights as float32, one parameter after the other, in the order of `state_dict`.

    Raises ValueError for too many numbers for a page, or one that isn't finite.
    """
    state = model.state_dict()
    count = sum(x.numel() for x in state.values())
    require_light("model", count, "a smaller d_model trains sooner, too")
    return b"".join(float32_bytes(checked_numbers(name, x)) for name, x in state.items())


def counts_of(spec: dict[str, Any], offered: list[int]) -> list[int]:
    """Return the numbers of heads that a model's width and its groups allow, its own among them."""
    (block,) = spec["blocks"]
    h = block["num_heads"]
    shared = h // block["num_kv_heads"]
    fitting = {n for n in offered if spec["d_model"] % n == 0 and n % shared == 0}
    return sorted(fitting | {h})


def _require_known(spec: dict[str, Any]) -> None:
    (block,) = spec["blocks"]
    parts = {"": spec, "final_norm.": spec["final_norm"], "feed_forward.": block["feed_forward"]}
    parts |= {f"norms[{i}].": norm for i, norm in enumerate(block["norms"])}
    for place, part in parts.items():
        for name in ("positions", "tied", "activation", "gain"):
            if part is not None and name in part:
                raise ValueError(f"model must have no {place}{name}={part[name]!r}: {BROWSER}")


def _require_concord(spec: dict[str, Any]) -> None:
    wanted = TaskSizes.of(concord)
    fits = (
        spec["vocabulary_size"] == wanted.vocabulary_size
        and spec["length"] >= wanted.length
        and list(spec["readouts"].items()) == list(wanted.readouts.items())
    )
    if not fits:
        raise ValueError(
            f"model must be one for the language Concord, with {wanted.vocabulary_size} words, "
            f"{wanted.length} positions and the readouts {dict(wanted.readouts)}, got "
            f"{spec['vocabulary_size']} words, {spec['length']} positions and {spec['readouts']}: "
            "TransformerModel.of_sizes(attncourse.tasks.concord, ...) makes one"
        )
