"""Names that a model makes up, how many of them are right, and what guesses of names cost."""

from collections.abc import Sequence

import torch

from attncourse.tasks import Sentence, names
from attncourse.training.baselines import bigram_loss, pair_counts, uniform_loss, unigram_loss
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


def name_guesses(known: Sequence[Sentence], held_out: Sequence[Sentence]) -> dict[str, float]:
    """Return the losses of guesses on names that are held out, in nats per letter.

    The end of a name counts as a letter.

    Args:
        known: names that "unigram" and "bigram" have counted.
        held_out: those that are guessed; "floor" is the loss of an oracle that knows the rules.
    """
    counts, of = (
        pair_counts([[*one.ids, names.boundary] for one in some], len(names.vocabulary))
        for some in (known, held_out)
    )
    log_likelihood = sum(names.log_probability(names.spelled(one.ids)) for one in held_out)
    return {
        "uniform": uniform_loss(len(names.vocabulary)),
        "unigram": unigram_loss(counts.sum(0), of.sum(0)),
        "bigram": bigram_loss(counts, of),
        "floor": -log_likelihood / int(of.sum()),
    }
