"""`diagnose` an attention, and `check` one in a test."""

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import torch

from attndoctor import report
from attndoctor.build import Candidate, require_candidate
from attndoctor.call import ATTNLIB_STYLE
from attndoctor.conventions import (
    convention_hints,
    conventions,
    conventions_that_fit,
    other_formula,
)
from attndoctor.examine import always_causal, examine, may_be_causal, seems_causal
from attndoctor.match import FIRST_QUESTION, Answers
from attndoctor.museum import Exhibit
from attndoctor.not_comparable import why_not_comparable
from attndoctor.options import (
    CallError,
    Clock,
    DiagnoseOptions,
    Load,
    OutOfTimeError,
    error_text,
    is_about_environment,
)
from attndoctor.support.check_result import CheckResult
from attndoctor.support.torch_settings import one_thread, usual_settings
from attndoctor.weights import guessed
from attnlib.checks import require_flag

CANNOT_BE_ASKED = "This can't be tested."
BROKEN = "Broken."
NOT_FINISHED = "Not finished."
UNLESS_MEANT = "Broken, unless it is intended."


@dataclass(frozen=True, repr=False)
class Diagnosis(CheckResult):
    """What `diagnose` found; truthy if nothing is wrong.

    Its message has a line for each finding, then lines for what wasn't tested and for what the
    candidate was taken for.

    Attributes:
        exhibits: those that the candidate behaves like.
        failed: names of the probes on which it is wrong.
        not_run: names of the probes that it can't run.
        edges: names of the failed probes that are about an edge: rows that may look nowhere,
            outputs of padding, half precision, weights in training.
        taken: what the candidate was taken for: how it is called, what its masks mean and so on.
        heading: "Healthy.", "Healthy, but it differs at the edges.", "Broken."; "Broken, unless it
            is intended." if it is right under another convention or formula; "This can't be
            tested." if it can't be compared; "Not finished." if time ran out.
    """

    exhibits: tuple[Exhibit, ...] = ()
    failed: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    taken: str = ""
    heading: str = "Healthy."

    def __repr__(self) -> str:
        return self.heading + ("\n" if self.message.startswith(report.ITEM) else " ") + self.message

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, as `python -m attndoctor --json` prints it."""
        first = next((name for name in self.failed if name not in self.edges), None)
        return {
            "healthy": self.passed,
            "heading": self.heading,
            "exhibits": [
                {"name": one.name, "cause": one.cause, "hint": one.hint} for one in self.exhibits
            ],
            "first_seen_on": first or next(iter(self.failed), None),
            "failed": list(self.failed),
            "edges": list(self.edges),
            "not_run": list(self.not_run),
            "taken": self.taken.split("; ") if self.taken else [],
            "message": self.message.split("\n"),
            "versions": _versions(),
        }

    def _repr_html_(self) -> str:
        """Return the findings as a list, and the other lines below."""
        return report.as_html(self.heading, self.message, self.passed)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    with suppress(metadata.PackageNotFoundError):  # a copy that wasn't installed
        versions["attnlib"] = metadata.version("attnlib")
    return versions


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
    seconds: float | None = 60,
    edges: bool = False,
) -> Diagnosis:
    """Compare an attention with attnlib's, and say which exhibit it behaves like.

    It runs all that the candidate's arguments allow: one sequence and two, gradients, training, a
    cache and so on; a mask, padding and causal alone and together, on one sample and many, with one
    query and another sequence, with padding anywhere. Outputs of padded queries have no convention,
    so a difference there is at an edge.

    It finds out how the candidate is called, where its weights are and what its masks mean, and
    says so in the diagnosis. Options say what it can't find out.

    Args:
        candidate: a module, which is copied and tested at its own sizes; or a class or a function
            that builds modules, called with d_model and num_heads (by any of their usual names) and
            tested at several sizes.
        load: copies the weights of the second module, a MultiHeadAttention, into the first, a
            candidate. None looks for W_q, W_k, W_v and W_o under their usual names.
        num_heads: h of a built module that has no attribute for it.
        causal: "always" if no argument turns it off, "when asked" if it isn't causal by itself.
            None takes it for always causal if it is right so.
        bias: whether the projections add biases. None looks which biases there are.
        out_projection: False if the candidate has none on purpose, and returns the joined heads.
        scale: the factor of dot products if it isn't 1 / sqrt(d_k) on purpose: a number (1 in T5)
            or a function of d_k (lambda d_k: 1 / d_k in muP).
        mask: what True or 1 means in its mask: "keep" (may look), "hide"; or "add" for numbers that
            are added to the scores. An argument called `mask` keeps by default.
        key_mask: the same for the padding mask, [B, T].
        mask_shape: the only axes that its mask may have: "[T, T]", "[B, T, T]", "[B, 1, T, T]" or
            "[B h, T, T]".
        qkv: the layout of one packed projection: W_q, W_k and W_v as "blocks", head by head
            ("heads"), or "interleaved" number by number.
        batch_first: False for tokens [T, B, d].
        arguments: further arguments of `forward`, by name, passed at every call.
        returns: a function from what `forward` returns to the output, or the output and weights.
        seconds: how long it may take; then it says what it knows. None sets no limit.
        edges: whether a difference at the edges makes the diagnosis falsy too.

    Raises:
        TypeError: the candidate is no module and builds none, or an option has another type.
        ValueError: an option that isn't one of these.
        CallError: the candidate can't be built, loaded or called; a TypeError and a ValueError.
    """
    require_candidate(candidate, num_heads)
    require_flag("edges", edges)
    options = DiagnoseOptions(
        load=load, num_heads=num_heads, causal=causal, bias=bias, out_projection=out_projection,
        scale=scale, mask=mask, key_mask=key_mask, mask_shape=mask_shape, qkv=qkv,
        batch_first=batch_first, arguments=arguments, returns=returns, clock=Clock(seconds),
    )  # fmt: skip
    answers = None
    with usual_settings(), one_thread(), torch.random.fork_rng(devices=[]):
        try:
            answers = Answers(examine(candidate, options), {})
            answers.run()
            return _diagnosis(answers, edges)
        except OutOfTimeError:
            return _unfinished(options.clock, answers)


def _unfinished(clock: Clock, answers: Answers | None) -> Diagnosis:
    """Return what is known when the time is over."""
    reason = report.TEXT("out of time", seconds=clock.seconds, doing=clock.doing)
    if answers is None or not answers.given:
        return Diagnosis(False, reason, heading=NOT_FINISHED)
    clock.stop()
    reason = f"{reason} {report.so_far(answers)}"
    return _with_limits(answers, NOT_FINISHED, reason, passed=False)


def _diagnosis(answers: Answers, edges: bool) -> Diagnosis:
    """Decide which kind of diagnosis it is, from the harmless to the unknown."""
    missing = [q for q in answers.wrong if is_about_environment(answers.given[q])]
    if missing and (FIRST_QUESTION in missing or missing == answers.wrong):
        error = answers.given[missing[0]]
        assert isinstance(error, Exception)
        reason = report.TEXT("environment", error=error_text(error))
        return _with_limits(answers, CANNOT_BE_ASKED, reason, passed=False)
    if missing:
        given = {q: answer for q, answer in answers.given.items() if q not in missing}
        answers = replace(answers, given=given)
    if not answers.wrong:
        return _not_wrong(answers, edges)
    by_axes = _by_other_axes(answers)
    if by_axes:
        return _not_wrong(by_axes, edges)
    if answers.only_refused:
        return _with_limits(answers, CANNOT_BE_ASKED, report.refuses(answers), passed=False)
    if answers.keeps_something:
        return _with_limits(answers, BROKEN, report.keeps_something(answers), passed=False)
    causally = _if_causal(answers)
    for reading, limit in _readings(answers, causally):
        exhibits = reading.explain(reading.wrong[0], limit) if reading.wrong else ()
        if exhibits:
            return _wrong(reading, exhibits)
    if causally and causally.mostly_right(FIRST_QUESTION):
        # Too high a number in place of minus infinity lets a little of the future through.
        answers = Answers.of(causally.tested)
    return _wrong(answers, ())


def _if_causal(answers: Answers) -> Answers | None:
    """Return the first answer as an always causal module's, if it is wrong otherwise."""
    if not answers.fails_self_attention or not may_be_causal(answers.tested):
        return None
    return Answers.to_self_attention(always_causal(answers.tested))


def _by_other_axes(answers: Answers) -> Answers | None:
    """Return the answers with a mask for each sample alone, if none is wrong.

    Code for such masks may take [T, T] too where its sizes fit by luck.
    """
    mask = answers.tested.first.signature.mask
    usual = answers.tested.options.mask_shape or mask == ATTNLIB_STYLE
    raised = all(isinstance(answers.given[question], Exception) for question in answers.wrong)
    if usual or mask.one != "[T, T]" or not mask.several or not raised:
        return None
    now = answers.under(mask_shape=mask.several)
    if now.wrong or "mask" not in now.tested.first.takes:
        return None
    return replace(now, tested=now.tested.with_note("a mask [T, T] taken at some sizes only"))


def _readings(answers: Answers, causally: Answers | None) -> Iterator[tuple[Answers, int]]:
    """Yield the answers under each reading of the candidate, and how many bugs to look for.

    A matrix that is read the wrong way looks like a bug: try one bug under both readings, then two.
    """
    if not answers.fails_self_attention:
        yield answers, 2
        return
    readings = [answers]
    if guessed(answers.tested.first.weight_map or []):
        readings.append(answers.under(transposed=False))
        yield from ((reading, 1) for reading in readings)
    yield from ((reading, 2) for reading in readings)
    if causally:  # a bug may hide that it looks left only; a finite fill may come with it
        if not causally.wrong or causally.explain(causally.wrong[0], limit=2):
            yield Answers.of(causally.tested), 2


def _not_wrong(answers: Answers, edges: bool) -> Diagnosis:
    tested, sign = answers.tested, None
    if not tested.first.setting.always_causal and "causal" not in tested.first.signature.roles:
        answers = replace(answers, tested=replace(tested, taken=("not causal", *tested.taken)))
        sign = seems_causal(tested) if may_be_causal(tested) else None
    exhibits: tuple[Exhibit, ...] = ()
    heading, message = "Healthy.", report.healthy(answers)
    if answers.failed:
        exhibits, message = report.at_the_edges(answers, in_full=edges)
        heading = "Healthy, but it differs at the edges."
    if sign:
        message = report.not_causal(sign, message)
    if sign and not tested.first.signature.takes & {"mask", "masks"}:  # by which it may be meant
        return _with_limits(answers, UNLESS_MEANT, message, exhibits, passed=False)
    return _with_limits(answers, heading, message, exhibits, passed=not (answers.failed and edges))


def _wrong(answers: Answers, exhibits: tuple[Exhibit, ...]) -> Diagnosis:
    fitting = conventions_that_fit(answers, exhibits)
    if fitting:
        message = report.right_by_conventions(answers, exhibits, fitting)
        return _with_limits(answers, UNLESS_MEANT, message, exhibits, passed=False)
    reason = why_not_comparable(answers, named=bool(exhibits))
    reason = reason or _if_tokens_come_first(answers, exhibits)
    if reason:
        return _with_limits(answers, CANNOT_BE_ASKED, reason, passed=False)
    if exhibits:
        message = report.behaves_like(exhibits, answers)
        message += convention_hints(exhibits, answers.tested)
        message += report.what_more(exhibits, answers)
    else:
        formula = other_formula(answers)
        by_formula = answers.under(formula=formula.steps) if formula else None
        message = report.in_no_known_way(answers)
        if formula and by_formula and by_formula.wrong:
            message = report.first_wrong("another formula", by_formula, formula=formula.says)
    return _with_limits(answers, BROKEN, message, exhibits, passed=False)


def _if_tokens_come_first(answers: Answers, exhibits: tuple[Exhibit, ...]) -> str | None:
    """Return which masks fail, if the module is right with tokens [T, B, d] but for masks."""
    if not any(isinstance(answers.given[question], Exception) for question in answers.wrong):
        return None
    for convention in conventions(exhibits, answers.tested):
        if "batch_first" in convention.options:
            now = answers.under(**convention.options)
            if now.takes_no_mask:
                return f"{convention.says} {report.other_masks(now)}"
    return None


def _with_limits(
    answers: Answers, heading: str, message: str, exhibits: tuple[Exhibit, ...] = (), *,
    passed: bool = True,
) -> Diagnosis:  # fmt: skip
    """Add what every diagnosis says, whatever was found."""
    message = f"{message}\n{report.limits(answers, passed)}"
    return Diagnosis(
        passed, message, exhibits, answers.names(answers.failed),
        tuple(probe.name for probe in answers.not_run),
        answers.names([q for q in answers.failed if answers.edge(q)]),
        "; ".join(answers.tested.taken), heading,
    )  # fmt: skip


def check(candidate: Candidate, *, edges: bool = False, **options: Any) -> Diagnosis:
    """Diagnose an attention, and raise unless it is healthy.

    It makes a test of one line::

        def test_attention():
            attndoctor.check(MyAttention, causal="always")

    Args:
        candidate: as for `diagnose`.
        edges: whether a difference at the edges counts too.
        **options: those of `diagnose`.

    Raises:
        AssertionError: it isn't healthy, or can't be tested; the message is the diagnosis.
        TypeError, ValueError: as for `diagnose`.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    try:
        diagnosis = diagnose(candidate, edges=edges, **options)
    except CallError as error:  # keep the candidate's traceback, drop the doctor's
        raise error.with_traceback(None) from error.__cause__
    if not diagnosis:
        raise AssertionError(repr(diagnosis))
    return diagnosis
