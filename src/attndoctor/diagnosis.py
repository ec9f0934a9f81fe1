"""Naming what is wrong with an attention."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from attndoctor import report
from attndoctor.asking import PATHS
from attndoctor.build import Candidate, require_candidate
from attndoctor.examine import (
    USUAL,
    always_causal,
    attention_inside,
    depends_on_order,
    examine,
    hints_at_positions,
    may_be_causal,
    normalizes_inside,
    seems_causal,
    short_context,
    sizes_taken,
    width_taken,
)
from attndoctor.machine import is_missing
from attndoctor.mask_style import OWN
from attndoctor.meant import by_other_formula, conventions, hints, right_if_meant
from attndoctor.museum._exhibit import Exhibit
from attndoctor.naming import ABOUT_DTYPES, ABOUT_NORMS, ABOUT_OTHER_FORMS, ABOUT_SHAPES, Answers
from attndoctor.places import guessed
from attndoctor.probes import PROBES
from attndoctor.refusing import is_refusal
from attndoctor.told import Load, Told
from attndoctor.torch_settings import usual_settings
from attndoctor.verdict import Verdict
from attnlib.checks import require_flag

CANNOT_BE_ASKED = "This can't be asked."
UNLESS_MEANT = "Broken, unless it is meant so."


@dataclass(frozen=True, repr=False)
class Diagnosis(Verdict):
    """What `diagnose` found; truthy if nothing is wrong.

    Its message has a line for what was found, or for each of several findings, then lines for what
    wasn't asked and for what the candidate was taken for.

    Attributes:
        exhibits: those that the candidate behaves like; none if it is right or wrong in another
            way.
        failed: names of the probes on which it is wrong.
        untried: names of the probes that it can't be asked.
        edges: names of those of the failed probes that are about an edge: where rows may look
            nowhere, what stands where the padding is, half precision, weights while it trains.
        taken: what the candidate was taken for: how it is called, what its masks mean and so on.
        heading: the diagnosis in a few words: "Healthy.", "Healthy, but it differs at the edges.",
            "Broken."; "Broken, unless it is meant so." where it is right under another convention
            or by another formula; or, where its attention can't be compared, "This can't be asked."
    """

    exhibits: tuple[Exhibit, ...] = ()
    failed: tuple[str, ...] = ()
    untried: tuple[str, ...] = field(default=())
    edges: tuple[str, ...] = ()
    taken: str = ""
    heading: str = "Healthy."

    def __repr__(self) -> str:
        return self.heading + ("\n" if self.message.startswith(report.ITEM) else " ") + self.message

    def _repr_html_(self) -> str:
        """Show each finding as an item of a list, and what was asked below them."""
        return report.as_html(self.heading, self.message, self.passed)


def diagnose(
    candidate: Candidate,
    *,
    load: Load | None = None,
    num_heads: int | None = None,
    causal: str | None = None,
    bias: bool | None = None,
    out_projection: bool = True,
    scale: float | Callable[[int], float] | None = None,
    mask: str | None = None,
    key_mask: str | None = None,
    mask_shape: str | None = None,
    qkv: str | None = None,
    batch_first: bool | None = None,
    arguments: Mapping[str, Any] | None = None,
    returns: Callable[[Any], Any] | None = None,
    edges: bool = False,
) -> Diagnosis:
    """Compare an attention with attnlib's, and say which exhibit it behaves like.

    The candidate is asked in many ways: one sequence and two, gradients, training, a cache and so
    on; what its arguments allow. A mask, padding and causal are asked alone and together, on one
    sample and many, one query and another sequence, with padding anywhere. Of padded queries
    nothing is promised, so that a difference there is at an edge.

    How it is called, where its weights are and what its masks mean is found out where that is safe,
    and told in the diagnosis; what isn't found out can be said here.

    Args:
        candidate: a module, of which a copy is asked at its own sizes; or a class or a function
            that builds modules, called with d_model and num_heads (under any of their usual names)
            and asked at several sizes.
        load: copies the weights of the second module, a MultiHeadAttention, into the first, a
            candidate. Left out, W_q, W_k, W_v and W_o are looked for under their usual names.
        num_heads: h of a built module that has no attribute for it.
        causal: "always" if no argument turns it off, "when asked" if it must not be so by itself.
            Left out, it is always causal if it is right under that.
        bias: whether the projections add biases. Left out, those count whose parameters are there.
        out_projection: False if the candidate has none by intent, and returns the joined heads.
        scale: what dot products are multiplied by if that isn't 1 / sqrt(d_k) by intent: a number
            (1 in T5) or a function of d_k (lambda d_k: 1 / d_k in muP).
        mask: what True or 1 means in its mask: "keep" (may look), "hide"; or "add" for numbers that
            are added to the scores. An argument called `mask` keeps unless told otherwise.
        key_mask: the same for the mask of padding, [B, T].
        mask_shape: the only axes that its mask may have: "[T, T]", "[B, T, T]", "[B, 1, T, T]" or
            "[B h, T, T]".
        qkv: the layout of one packed projection: W_q, W_k and W_v as "blocks", head by head
            ("heads"), or "interleaved" number by number.
        batch_first: False for tokens [T, B, d].
        arguments: what else `forward` needs, by name; handed over at every call.
        returns: takes what `forward` returns, and gives the output, or the output and the weights.
        edges: whether a difference at the edges makes the diagnosis falsy too.

    Raises:
        TypeError: the candidate is no module and builds none, or an option has another type.
        ValueError: an option that isn't one of these.
        CallError: the candidate can't be built, loaded or called; a TypeError and a ValueError.
    """
    require_candidate(candidate, num_heads)
    require_flag("edges", edges)
    told = Told(
        load=load, num_heads=num_heads, causal=causal, bias=bias, out_projection=out_projection,
        scale=scale, mask=mask, key_mask=key_mask, mask_shape=mask_shape, qkv=qkv,
        batch_first=batch_first, arguments=arguments, returns=returns,
    )  # fmt: skip
    with usual_settings(), torch.random.fork_rng(devices=[]):
        patient = examine(candidate, told)
        answers = Answers.of(patient)
        missing = [question for question in answers.wrong if is_missing(answers.given[question])]
        if missing and ((PROBES[0], PATHS[0]) in missing or missing == answers.wrong):
            error = answers.given[missing[0]]
            assert isinstance(error, Exception)
            reason = report.machine_lacks(error)
            return _told(answers, CANNOT_BE_ASKED, reason, passed=False)
        if missing:
            given = {q: answer for q, answer in answers.given.items() if q not in missing}
            answers = replace(answers, given=given)
        if not answers.wrong:
            return _not_wrong(answers, candidate, told, edges)
        by_axes = _by_other_axes(answers, candidate, told)
        if by_axes:
            return _not_wrong(by_axes, candidate, told, edges)
        if answers.only_refused:
            return _told(answers, CANNOT_BE_ASKED, report.refuses(answers), passed=False)
        if answers.keeps_something:
            return _told(answers, "Broken.", report.keeps_something(answers), passed=False)
        causally = _if_causal(answers, told)
        for reading, limit in _readings(answers, causally, candidate, told):
            exhibits = reading.explain(reading.wrong[0], limit) if reading.wrong else ()
            if exhibits:
                return _wrong(reading, exhibits, candidate, told)
        if causally and causally.mostly_right((PROBES[0], PATHS[0])):
            # A number that is too small for minus infinity lets a little of the future through.
            answers = Answers.of(causally.patient)
        return _wrong(answers, (), candidate, told)


def _if_causal(answers: Answers, told: Told) -> Answers | None:
    """Return the first answers as those of an always causal one, if they are wrong without."""
    wrong_at_once = (PROBES[0], PATHS[0]) in answers.failed
    if not wrong_at_once or not may_be_causal(answers.patient, told):
        return None
    return Answers.at_once(always_causal(answers.patient))


def _by_other_axes(answers: Answers, candidate: Candidate, told: Told) -> Answers | None:
    """Return what is answered with masks on the axes of one for each sample, if nothing is wrong.

    Code for such masks may take [T, T] too where its sizes fit by luck, and raises an error where
    they don't.
    """
    mask = answers.patient.first.forward.mask
    raised = all(isinstance(answers.given[question], Exception) for question in answers.wrong)
    if told.mask_shape or mask == OWN or mask.one != "[T, T]" or not mask.several or not raised:
        return None
    now = Answers.of(examine(candidate, replace(told, mask_shape=mask.several)))
    if now.wrong or "mask" not in now.patient.first.takes:
        return None
    return replace(now, patient=now.patient.noting("a mask [T, T] taken at some sizes only"))


def _readings(
    answers: Answers, causally: Answers | None, candidate: Candidate, told: Told
) -> Iterator[tuple[Answers, int]]:
    """Yield what the candidate answers, taken for what it may be; and how many bugs to look for.

    A matrix that is read the wrong way looks like a bug: one exhibit is looked for under both
    readings before two at once.
    """
    patient, plain = answers.patient, (PROBES[0], PATHS[0])
    if plain not in answers.failed:
        yield answers, 2
        return
    readings = [answers]
    if guessed(patient.first.places or []):
        readings.append(Answers.of(examine(candidate, told, turned=False)))
        yield from ((reading, 1) for reading in readings)
    yield from ((reading, 2) for reading in readings)
    if causally:  # a bug may hide that it looks left only
        if not causally.wrong or causally.explain(causally.wrong[0], limit=1):
            yield Answers.of(causally.patient), 1


def _not_wrong(answers: Answers, candidate: Candidate, told: Told, edges: bool) -> Diagnosis:
    patient, sign = answers.patient, None
    if not patient.first.setting.always_causal and "causal" not in patient.first.forward.roles:
        answers = replace(answers, patient=replace(patient, taken=("not causal", *patient.taken)))
        sign = seems_causal(patient, candidate) if may_be_causal(patient, told) else None
    exhibits: tuple[Exhibit, ...] = ()
    heading, message = "Healthy.", report.healthy(answers)
    if answers.failed:
        exhibits, message = report.at_the_edges(answers, told, in_full=edges)
        heading = "Healthy, but it differs at the edges."
    if sign:
        message = report.not_causal(sign, message)
    if sign and not patient.first.forward.takes & {"mask", "masks"}:  # by which it may be meant
        return _told(answers, UNLESS_MEANT, message, exhibits, passed=False)
    return _told(answers, heading, message, exhibits, passed=not (answers.failed and edges))


def _wrong(
    answers: Answers, exhibits: tuple[Exhibit, ...], candidate: Candidate, told: Told
) -> Diagnosis:
    meant = right_if_meant(answers, exhibits, candidate, told)
    if meant:
        message = report.if_meant(answers, exhibits, meant)
        return _told(answers, UNLESS_MEANT, message, exhibits, passed=False)
    reason = _why_not_comparable(answers, bool(exhibits), candidate, told)
    reason = reason or _if_tokens_come_first(answers, exhibits, candidate, told)
    if reason:
        return _told(answers, CANNOT_BE_ASKED, reason, passed=False)
    if exhibits:
        message = report.behaves_like(exhibits, answers) + hints(exhibits, answers.patient, told)
        message += report.what_more(exhibits, answers)
    else:
        other = by_other_formula(answers, candidate, told)
        message = report.in_no_known_way(answers)
        if other and other[1].wrong:
            message = report.wrong_by_another_formula(*other)
    return _told(answers, "Broken.", message, exhibits, passed=False)


def _if_tokens_come_first(
    answers: Answers, exhibits: tuple[Exhibit, ...], candidate: Candidate, told: Told
) -> str | None:
    """Say which masks aren't taken by what would be right with tokens [T, B, d], if that is so."""
    if not any(isinstance(answers.given[question], Exception) for question in answers.wrong):
        return None
    for convention in conventions(exhibits, answers.patient, told):
        if "batch_first" in convention.options:
            now = Answers.of(examine(candidate, replace(told, **convention.options)))
            if now.takes_no_mask:
                return f"{convention.says} {report.other_masks(now)}"
    return None


def _why_not_comparable(
    answers: Answers, named: bool, candidate: Candidate, told: Told
) -> str | None:
    """Say why an answer may be another than attention's though nothing is broken, if it may."""
    asked, plain = answers.patient.first, (PROBES[0], PATHS[0])
    besides = answers.patient.besides if plain in answers.failed else ()
    if besides and asked.places is None:
        return report.left_by_load(besides)
    if named:
        return None
    if answers.takes_no_mask:
        return report.other_masks(answers)
    raised = answers.given[answers.wrong[0]]
    if isinstance(raised, Exception):
        inside = attention_inside(asked)
        if plain in answers.failed and ABOUT_NORMS in str(raised):
            return report.norm_otherwise(raised, inside)
        if plain in answers.failed and ABOUT_DTYPES.search(str(raised)):
            return report.other_dtype(raised)
        if plain in answers.failed and any(words in str(raised) for words in ABOUT_OTHER_FORMS):
            return report.other_form(raised)
        if plain in answers.failed and "NoneType" in str(raised) and asked.forward.unused:
            return report.left_out(raised, asked.forward.unused)
        sizes = sizes_taken(answers.patient, raised) if plain in answers.failed else None
        if sizes:
            return report.certain_sizes(raised, sizes)
        if plain in answers.failed and is_refusal(raised):
            width = width_taken(candidate, told)
            if width:
                return report.certain_widths(raised, asked.setting.sizes.d_k, width)
        context = short_context(asked.module, USUAL)
        if context or not isinstance(raised, ABOUT_SHAPES):
            return report.short_context(context, USUAL) if context else None
    bare = guessed(asked.places or [])
    if bare and plain in answers.failed:
        return report.bare_parameters(bare)
    length = answers.other_length
    if length:
        return report.other_length(*length)
    if plain in answers.failed and answers.varies:
        return None
    low = answers.patient.low_precisions if plain in answers.failed else ()
    if low and answers.nearly_right:
        return report.low_precision(low)
    positions = hints_at_positions(asked.module)
    if positions:
        return report.positions_inside(positions, raised)
    if besides:
        return report.more_than_attention(besides, attention_inside(asked))
    if plain in answers.failed and answers.patient.changed(residual=True).right(PROBES[0]):
        return report.RESIDUAL_INSIDE
    if plain in answers.failed and normalizes_inside(asked):
        return report.NORMALIZED_INSIDE
    return (
        report.ORDER_INSIDE
        if plain in answers.failed and depends_on_order(answers.patient)
        else None
    )


def _told(
    answers: Answers,
    heading: str,
    message: str,
    exhibits: tuple[Exhibit, ...] = (),
    *,
    passed: bool = True,
) -> Diagnosis:
    """Add what every diagnosis says, whatever was found."""
    message = f"{message}\n{report.limits(answers, passed)}"
    return Diagnosis(
        passed, message, exhibits, answers.names(answers.failed),
        tuple(probe.name for probe in answers.unasked),
        answers.names([q for q in answers.failed if answers.edge(q)]),
        "; ".join(answers.patient.taken), heading,
    )  # fmt: skip
