"""What is no bug where it is meant: other conventions, under which the same answers are right."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from attnlib.attention import MultiHeadAttention
from attnlib.museum.doctor.asking import PATHS
from attnlib.museum.doctor.build import Candidate
from attnlib.museum.doctor.examine import examine
from attnlib.museum.doctor.formulas import other_scale
from attnlib.museum.doctor.naming import Answers, Guess
from attnlib.museum.doctor.probes import PROBES
from attnlib.museum.doctor.told import CallError, Options, Told

_IF_MEANT = "That differs from the paper, and is fine if it is meant"


@dataclass(frozen=True)
class Convention:
    """Another convention: the options of `diagnose` that tell of it, and what to say of it."""

    options: Options
    says: str


HIDING = Convention(
    {"mask": "hide"}, 'If your mask is meant to hide where it is True, say mask="hide".'
)
ADDED = Convention(
    {"mask": "add"}, 'If your mask is meant to be added to the scores, say mask="add".'
)
CONVENTIONS: dict[str, Convention] = {  # by the exhibit that each looks like
    "no scale": Convention(
        {"scale": 1},
        f"{_IF_MEANT} (T5 leaves the scale to its first weights): then say scale=1, and the rest "
        "is asked.",
    ),
    "scale applied twice": Convention(
        {"scale": lambda d_k: 1 / d_k},
        f"{_IF_MEANT} (muP divides by d_k): then say scale=lambda d_k: 1 / d_k, and the rest is "
        "asked.",
    ),
    "inverted mask": HIDING,
    "0/1 mask added": ADDED,
    "mask crosses batch and heads": Convention(
        {"mask_shape": "[B, 1, T, T]"},
        'If your mask is meant to have the axes [B, 1, T, T], say mask_shape="[B, 1, T, T]".',
    ),
    "attention across the batch": Convention(
        {"batch_first": False},
        "If your tokens are meant to be [T, B, d], say batch_first=False.",
    ),
    "averaged heads": Convention(
        {"returns": lambda result: result[0]},
        "If a mean is what you want to show, ask for the output alone: "
        "returns=lambda result: result[0].",
    ),
    "forgotten W_o": Convention(
        {"out_projection": False},
        "If that projection stands elsewhere by intent, say out_projection=False.",
    ),
}
_MASKED = {"mask", "masks", "key_mask", "a limit", "two limits"}


def right_if_meant(
    answers: Answers, exhibits: Guess, candidate: Candidate, told: Told
) -> Convention | None:
    """Return a convention that nobody told of, under which nothing is wrong, if there is one.

    attnlib's own modules promise attnlib's conventions.
    """
    if isinstance(answers.patient.first.module, MultiHeadAttention):
        return None
    for convention in _possible(answers, exhibits):
        if any(getattr(told, name) != getattr(Told(), name) for name in convention.options):
            continue
        with suppress(CallError):
            if not Answers.of(examine(candidate, replace(told, **convention.options))).wrong:
                return convention
    return None


def _possible(answers: Answers, exhibits: Guess) -> Iterator[Convention]:
    """Yield the conventions that may be behind what is wrong."""
    if len(exhibits) == 1:
        yield from (CONVENTIONS[e.name] for e in exhibits if e.name in CONVENTIONS)
    elif all(_MASKED & set(probe.needs) for probe, _ in answers.wrong):
        yield from (HIDING, ADDED)
    elif not exhibits and (PROBES[0], PATHS[0]) in answers.failed:
        scale = other_scale(answers)
        if scale is not None:
            says = f"{_IF_MEANT}: dot products are multiplied by {scale:.4g}. Then say scale="
            yield Convention({"scale": scale}, f"{says}{scale:.4g}, and the rest is asked.")
