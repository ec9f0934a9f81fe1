"""What is no bug where it is meant: other conventions and formulas by which an answer is right."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch

from attndoctor.asking import PATHS, NoGradientError
from attndoctor.build import Candidate
from attndoctor.comparing import agree
from attndoctor.draw import Draw
from attndoctor.examine import examine
from attndoctor.formulas import Found, Scale, other_formula, other_scale
from attndoctor.museum._catalog import named
from attndoctor.museum._exhibit import Exhibit
from attndoctor.naming import Answers, Guess
from attndoctor.patient import Patient, answer_of_attnlib
from attndoctor.probes import PROBES
from attndoctor.told import CallError, Told
from attnlib.attention import MultiHeadAttention

_MOST = 3  # conventions at once
_IF_MEANT = "That differs from the paper, and is fine if it is meant"
_SAYS_FORMULA = "Its answers are those of another formula: {}. That is fine if it is meant."
_MASKED = {"a mask", "a mask for each sample", "any number of samples"}  # under its meaning right
_LIMITED = {  # what is needed by questions that ask limits too, or the name of one
    "mask", "masks", "key_mask", "a limit", "two limits", "long", "limits in training with dropout",
}  # fmt: skip


@dataclass(frozen=True)
class Convention:
    """Another convention: the options of `diagnose` that tell of it, and what to say of it."""

    options: dict[str, Any]
    says: str


HIDING = Convention(
    {"mask": "hide"}, 'If your mask is meant to hide where it is True, say mask="hide".'
)
ADDED = Convention(
    {"mask": "add"}, 'If your mask is meant to be added to the scores, say mask="add".'
)
PADDING_HIDES = Convention(
    {"key_mask": "hide"},
    'If your padding mask is meant to hide where it is True, say key_mask="hide".',
)
PADDING_ADDED = Convention(
    {"key_mask": "add"},
    'If your padding mask is meant to be added to the scores, say key_mask="add".',
)
FOR_INFERENCE = Convention(
    {"gradients": False},
    "Nothing in front of it can be trained, nor its own weights. That is fine if it is for "
    "inference alone.",
)
OUTPUT_ALONE = Convention(
    {"returns": lambda result: result[0]},
    "Its output is right, but what it returns beside it isn't its weights [B, h, T, T]. That is "
    "fine if something else is meant to stand there (a loss, keys and values, a mean): then say "
    "returns=lambda result: result[0].",
)
CONVENTIONS: dict[str, Convention] = {  # by the exhibit that each looks like
    "no scale": Convention(
        {"scale": 1},
        f"{_IF_MEANT} (T5 leaves the scale to its first weights): then say scale=1, and the rest "
        "is asked.",
    ),
    "scale applied twice": Convention(
        {"scale": lambda d_k: 1 / d_k},
        f"{_IF_MEANT} (muP divides by d_k): then say scale=lambda d_k: 1 / d_k, and the rest "
        "is asked.",
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


def hints(exhibits: Guess, patient: Patient, told: Told) -> str:
    """Say what may be meant in place of some exhibits, of what nobody told."""
    return "".join(f" {one.says}" for one in conventions(exhibits, patient, told))


def right_if_meant(
    answers: Answers, exhibits: Guess, candidate: Candidate, told: Told, most: int = _MOST
) -> tuple[Convention, ...]:
    """Return what nobody told of and under which nothing is wrong; nothing if there is none.

    attnlib's own modules promise attnlib's conventions, and its formula.
    """
    if isinstance(answers.patient.first.module, MultiHeadAttention):
        return ()
    for convention in _possible(answers, exhibits, told) if most else ():
        now_told = replace(told, **convention.options)
        with suppress(CallError):
            now = Answers.of(examine(candidate, now_told))
            if not now.wrong:
                return (convention,)
            guess = now.explain(now.wrong[0], limit=1)
            fewer = len(now.wrong) < len(answers.wrong) or 0 < len(guess) < len(exhibits)
            if now.wrong[0] == answers.wrong[0] and not fewer and not other_formula(now):
                continue  # no nearer
            rest = right_if_meant(now, guess, candidate, now_told, most - 1)
            if rest:
                return (convention, *rest)
    return ()


def by_other_formula(
    answers: Answers, candidate: Candidate, told: Told
) -> tuple[Found, Answers] | None:
    """Return a formula that is right on one sequence, and what was asked once more under it."""
    formula = other_formula(answers)
    if formula is None:
        return None
    return formula, Answers.of(examine(candidate, replace(told, formula=formula.steps)))


def _possible(answers: Answers, exhibits: Guess, told: Told) -> Iterator[Convention]:
    """Yield the conventions that may be behind what is wrong."""
    if told.num_heads is not None:
        yield from _of_heads(answers)
    known = conventions(exhibits, answers.patient, told)
    yield from known
    if exhibits and not known:
        return
    if not exhibits and told.returns is None and answers.shows_something_else:
        yield OUTPUT_ALONE
    if all(isinstance(answers.given[question], NoGradientError) for question in answers.wrong):
        yield FOR_INFERENCE
    if (PROBES[0], PATHS[0]) in answers.failed:
        if exhibits or told.formula:
            return
        formula = other_formula(answers)
        if formula:
            yield Convention({"formula": formula.steps}, _SAYS_FORMULA.format(formula))
        elif told.scale is None and (scale := other_scale(answers)):
            yield from _of_scale(scale, answers)
        else:
            yield from conventions(_beside_a_formula(answers), answers.patient, told)
    elif all(_LIMITED & {*probe.needs, probe.name} for probe, _ in answers.wrong):
        roles = answers.patient.first.forward.roles
        failed = {probe.name for probe, _ in answers.failed}
        if "mask" in roles and told.mask is None and failed & _MASKED:
            yield from (HIDING, ADDED)
        if "key_mask" in roles and told.mask is told.key_mask is None and "padding" in failed:
            yield from (PADDING_HIDES, PADDING_ADDED)


def _beside_a_formula(answers: Answers) -> list[Exhibit]:
    """Return what is seen of a convention though another formula hides the exhibit it looks like.

    Samples that move each other, weights without heads, no projection behind these.
    """
    asked = answers.patient.first
    found = []
    x = Draw(asked).tokens(2, 7).requires_grad_()
    with suppress(Exception), asked.on(PATHS[0]) as on_path:
        output, weights = on_path(x)
        (slopes,) = torch.autograd.grad(output[0].square().sum(), x)
        if slopes[1].any():
            found.append(named("attention across the batch"))
        if weights is not None and weights.dim() == 3:
            found.append(named("averaged heads"))
    if not any(place.ours.startswith("W_o") for place in asked.places or []):
        found.append(named("forgotten W_o"))
    return found


def conventions(exhibits: Sequence[Exhibit], patient: Patient, told: Told) -> list[Convention]:
    """Return the conventions that look like these exhibits, but those that were told otherwise."""
    found = (CONVENTIONS[e.name] for e in exhibits if e.name in CONVENTIONS)
    says_batch_first = getattr(patient.first.module, "batch_first", None) is not None
    return [
        one
        for one in found
        if not any(getattr(told, name) != getattr(Told(), name) for name in one.options)
        and not ("batch_first" in one.options and says_batch_first)
    ]


def _of_heads(answers: Answers) -> Iterator[Convention]:
    """Yield other numbers of heads than the one that was told, by which its answers are right."""
    setting, takes = answers.patient.first.setting, answers.patient.first.takes
    if (PROBES[0], PATHS[0]) not in answers.failed:
        return
    d_model, width = setting.sizes.d_model, setting.sizes.all_heads
    for h in range(1, d_model + 1):
        head_dim = width // h if width != d_model else 0
        sizes = replace(setting.sizes, num_heads=h, num_kv_heads=h, head_dim=head_dim)
        if d_model % h or width % h or sizes == setting.sizes:
            continue
        right = answer_of_attnlib(PROBES[0], replace(setting, sizes=sizes), takes)
        given = answers.given[PROBES[0], PATHS[0]]
        if isinstance(given, Exception) or isinstance(right, Exception):
            return
        ours, theirs = ([(output, None) for output, _ in answer] for answer in (given, right))
        if agree(ours, theirs, PROBES[0].tolerance):
            yield Convention({"num_heads": h}, f"If it has {h} heads, say num_heads={h}.")


def _of_scale(scale: Scale, answers: Answers) -> Iterator[Convention]:
    """Yield another scale, the same for all heads or one that falls with d_k."""
    if not scale.is_likely:
        return
    right = f"1 / sqrt(d_k) is {scale.d_k**-0.5:.4g}"
    says = f"{_IF_MEANT}: dot products are multiplied by {scale} ({right}). Then say scale="
    yield Convention({"scale": scale.number}, f"{says}{scale}.")
    share = scale.times_d_k
    if "second" in answers.patient.asked:
        formula = f"lambda d_k: {share:.6g} / d_k"
        yield Convention({"scale": lambda d_k: share / d_k}, f"{says}{formula}.")
