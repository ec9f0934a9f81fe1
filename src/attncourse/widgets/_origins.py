"""Say where trained weights are cut into other heads, or put under another mask."""

from typing import Any

from attndoctor.support.printing import counted

CLAIM_NO_TRAINING = ("random", "hand-built", "built by hand", "as given")


def mask_of_training(origin: str, causal: bool) -> bool | None:
    """Return the mask at the start, or None where the origin claims no training.

    Weights of such an origin are anybody's to cut and to mask. All others are held to be a model's,
    trained with what a widget starts with.
    """
    return None if origin.lower().startswith(CLAIM_NO_TRAINING) else causal


def departure(trained: dict[str, Any], num_heads: int, causal: bool) -> str:
    """Return how the heads and mask that are shown depart from those that were trained, or nothing.

    `trained` holds num_heads, the heads' names if they have some, and causal as `mask_of_training`
    returns it. Heads with names that nobody trained were built. shared/origins.js does the same.
    """
    is_trained = trained["causal"] is not None
    if not is_trained and not trained.get("heads"):
        return ""
    heads, ways = trained["num_heads"], []
    if num_heads != heads:
        kind = "trained" if is_trained else "hand-built"
        ways.append(f"cut anew from {counted(heads, f'{kind} head')}")
    if is_trained and causal != trained["causal"]:
        ways.append("with a mask put on" if causal else "with the mask taken off")
    return ", ".join(ways)


def said_of(origin: str, departs: str) -> str:
    """Return where weights come from, after how they depart from their training."""
    if not departs:
        return f"Weights: {origin}."
    return (
        f"{departs[0].upper()}{departs[1:]}: nobody trained or built such heads. Weights: {origin}."
    )
