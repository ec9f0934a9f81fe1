"""Names that a model makes up, and how many of them are right."""

import torch

from attncourse.tasks import names
from attnlib.checks import require_count, require_positive_int
from attnlib.model import TransformerModel, generate
from attnlib.model.generation import require_next


def sample_names(
    model: TransformerModel,
    number: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> list[str]:
    """Let a model that learned `attncourse.tasks.names` make up names, each from the boundary on.

    Args:
        model: with a readout "next" of the 27 tokens, and 16 positions.
        number: how many names.
        temperature, top_k: as for `attnlib.model.generate`.
        seed: of the draws; torch's own random numbers are left alone.

    Returns:
        The names, without boundaries. One that found no end in time is cut off.

    Raises:
        TypeError, ValueError: as `generate`, or another seed or number than whole ones from 0 on.
    """
    require_next(model)
    require_count("number", number)
    require_count("seed", seed)
    device = model.token_embedding.weight.device
    tokens = generate(
        model, torch.full((number, 1), names.boundary, device=device), names.length,
        temperature=temperature, top_k=top_k, stop=names.boundary,
        generator=torch.Generator(device).manual_seed(seed),
    )  # fmt: skip
    return [names.spelled(row) for row in tokens.tolist()]


def share_of_names(model: TransformerModel, number: int = 1000, *, seed: int = 0) -> float:
    """Return the share of a model's names that keep all rules; takes what `sample_names` takes."""
    require_positive_int("number", number)
    kept = [names.keeps_rules(name) for name in sample_names(model, number, seed=seed)]
    return sum(kept) / number
