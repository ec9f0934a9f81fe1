"""The sentences of a diagnosis."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import cycle

from attndoctor import reference
from attndoctor.call import CALL_MODES, PASTS
from attndoctor.conventions import Convention, convention_hints, other_scale
from attndoctor.match import (
    AMBIGUOUS,
    FIRST_QUESTION,
    NARROW,
    Answers,
    Guess,
    Question,
    WrongCombination,
)
from attndoctor.module_under_test import ModuleUnderTest
from attndoctor.names import ROLES, known_as
from attndoctor.options import CHOICES, error_text, name_list, noted_size
from attndoctor.probes import SELF_ATTENTION, Probe
from attndoctor.questions import LONGEST, USUAL
from attndoctor.support.texts import Texts

ITEM = "* "  # before each of several findings
_LACKING = {  # what isn't taken, by what a probe needs or by the sizes of its module
    "mask": "masks", "masks": "masks for each sample", "two sequences": "a second sequence",
    "key_mask": "padding", "causal": "causal", "two limits": "two masks at once",
    "a limit": "masks",
    "weights": "weights", "cache": "a cache", "grouped": "fewer key heads than query heads",
    "dropout": "dropout",
    "head masks": "masks for each head", "defaults": "keys or values left out",
    "differentiable weights": "weights that gradients flow through",
    "long": f"{LONGEST} tokens", "padding of keys": "padding of a second sequence",
    "masks of keys": "masks of a second sequence",
}  # fmt: skip
TEXT = Texts(__file__)
_LIMITS = {"mask", "masks", "key_mask", "causal", "a limit", "two limits"}


def healthy(answers: Answers) -> str:
    """Return that no difference was found."""
    names = answers.names(list(answers.given))
    return TEXT("healthy", number=len(names), names="; ".join(names))


def not_causal(sign: str, message: str) -> str:
    """Return that tokens see those after them, though something suggests a triangle."""
    between = "\n" if message.startswith(ITEM) else " "
    return f"{TEXT('not causal', sign=sign)}{between}{message}"


def behaves_like(exhibits: Guess, answers: Answers) -> str:
    """Return which exhibits explain what is wrong."""
    first = answers.wrong[0]
    says = [TEXT("behaves like", exhibits=_listed(exhibits), where=_says(first))]
    elsewhere = list(_right_elsewhere(first, answers))
    says += [*elsewhere, TEXT("condition")] if elsewhere else []
    return " ".join([*says, *(f"{exhibit.cause} {exhibit.hint}" for exhibit in exhibits)])


def _right_elsewhere(question: Question, answers: Answers) -> Iterator[str]:
    """Yield in which other mode an answer is right, if there is one."""
    for mode in CALL_MODES:
        if answers.right_in(question[0], mode):
            yield TEXT("other path", path=mode.says or "in eval(), with weights and gradients")
            return


def what_more(exhibits: Guess, answers: Answers) -> str:
    """Return what exhibits leave unexplained."""
    rest = [question for question in answers.failed if not answers.agrees(question, exhibits)]
    return f" {TEXT('more', names=_names(rest, answers))}" if rest else ""


def right_by_conventions(
    answers: Answers, exhibits: Guess, conventions: Sequence[Convention]
) -> str:
    """Return a sentence that names the conventions under which every test passes."""
    message = behaves_like(exhibits, answers) if exhibits else first_wrong("not the same", answers)
    meant = TEXT("meant", this="all of this" if len(conventions) > 1 else "this")
    return " ".join([message, *(convention.says for convention in conventions), meant])


def first_wrong(text: str, answers: Answers, **more: str) -> str:
    """Return what is wrong first, in this text."""
    first = answers.wrong[0]
    return TEXT(text, where=_says(first), difference=_difference(first, answers), **more)


def keeps_something(answers: Answers) -> str:
    """Return that an answer depends on earlier calls."""
    varies = f" {TEXT('varies', why='')}" if answers.varies else ""
    return first_wrong("keeps something", answers) + varies


def so_far(answers: Answers) -> str:
    """Return what was found in the questions that were asked."""
    number = len({probe for probe, _ in answers.given})
    ways = f"So far, asked in {number} way{'s' if number > 1 else ''},"
    if not answers.wrong:
        return f"{ways} nothing is wrong."
    return f"{ways} it is {first_wrong('wrong', answers).replace('Wrong', 'wrong', 1)}"


def in_no_known_way(answers: Answers) -> str:
    """Return what differs if no exhibit does the same."""
    return " ".join(_what_is_known(answers.wrong[0], answers))


def _what_is_known(first: Question, answers: Answers) -> Iterator[str]:
    """Yield all that was found out of an answer that no exhibit gives."""
    given, is_self_attention = answers.given[first], first[0] is SELF_ATTENTION
    combination = WrongCombination.first(first, answers)
    where, difference = _says(first), _difference(first, answers)
    if isinstance(given, Exception):
        size = "" if is_self_attention else noted_size(given)
        where = f"{where} ({size})" if size else where
        yield TEXT("wrong", where=where, difference=difference)
        if AMBIGUOUS in str(given):
            yield TEXT("ambiguous")
        yield from _reservations(answers)
        return
    where = f"{where} ({combination.says})" if combination else where
    yield TEXT("no exhibit", where=where, difference=difference)
    yield from _of_limits(first, combination, answers)
    if not (combination and combination.dropped):
        yield from _of_idle_arguments(first[0], answers.tested)
    yield from _right_elsewhere(first, answers)
    off = answers.heads_off if is_self_attention else []
    if off:
        heads, are = ("head", "is") if len(off) == 1 else ("heads", "are")
        yield TEXT("heads", heads=f"{heads} {', '.join(map(str, off))}", are=are)
    pairs = reference.side_by_side(given, answers.behavior((), first[0]))
    unlike = [(a, weights) for (a, _), (b, weights) in pairs if not reference.have_one_shape(a, b)]
    if unlike:
        ours, weights = unlike[0]
        if ours is not None and weights is not None and ours.shape == weights.shape:
            yield TEXT("axes of weights")
        return
    if is_self_attention and not answers.shows_weights:
        yield TEXT("wish for weights")
    if first[0].often:
        yield first[0].often
    if is_self_attention and not _weights_alone(first, answers):
        yield from _of_another_formula(answers)
    yield from _reservations(answers)


def _of_limits(
    question: Question, combination: WrongCombination | None, answers: Answers
) -> Iterator[str]:
    """Yield what seems to be wrong with a limit, or with the returned weights alone."""
    probe, tested = question[0], answers.tested
    limited = _LIMITS & set(probe.needs)
    near = combination.is_near if combination else answers.mostly_right(question)
    if combination and combination.dropped:
        yield combination.dropped
    elif _weights_alone(question, answers):
        yield TEXT("weights alone")
    elif combination and combination.spoils_whole_samples:
        yield TEXT("other samples")
    elif near and probe.of == "the output" and limited and "cache" not in probe.needs:
        yield TEXT("leaking")
    if tested.first.setting.always_causal and limited:
        if tested.changed(always_causal=False).right(*question):
            yield TEXT("switched off")


def _of_idle_arguments(probe: Probe, tested: ModuleUnderTest) -> Iterator[str]:
    """Yield which arguments have no effect."""
    idle = tested.idle_arguments(probe)
    if idle:
        names = " and ".join(f"`{tested.first.signature.roles[role]}`" for role in idle)
        yield TEXT("idle", names=names, have="have" if len(idle) > 1 else "has")
    if "causal" in idle and tested.changed(always_causal=True).right(SELF_ATTENTION):
        yield TEXT("always causal")


def _reservations(answers: Answers) -> Iterator[str]:
    """Yield that answers vary, or that not all exhibits were tried."""
    if answers.varies:
        why = ": something in it is random in eval(), or made each time"
        yield TEXT("varies", why=why)
    if not answers.narrow:
        yield TEXT("too wide for two bugs", narrow=NARROW)


def _weights_alone(question: Question, answers: Answers) -> bool:
    """Return whether an answer is right but for the weights."""
    probe, _ = question
    return probe.of == "the output" and reference.parts_agree(
        answers.given[question], answers.behavior((), probe), probe.tolerance
    )


def _of_another_formula(answers: Answers) -> Iterator[str]:
    """Yield what may explain an answer that is wrong on one sequence already."""
    if not answers.fails_self_attention or answers.varies:
        return
    if answers.tested.first.setting.always_causal and answers.mostly_right(FIRST_QUESTION):
        yield from (TEXT("nearly causal"), TEXT("leaking"))
        return
    scale = other_scale(answers)
    everywhere = not answers.heads_off and all(
        question in answers.failed for question in answers.given if question[0] is SELF_ATTENTION
    )
    if answers.off_by_rounding and everywhere and not scale:
        yield TEXT("rounded")
    elif answers.right_on_equal_tokens:
        if scale:
            yield TEXT("scale found", scale=scale)
        yield TEXT("right on equal tokens")
    else:
        yield TEXT("wrong on equal tokens")


def refuses(answers: Answers) -> str:
    """Return on what a module raises an error on purpose, where all else is right."""
    error = answers.given[answers.wrong[0]]
    assert isinstance(error, Exception)
    right = {probe for probe, _ in answers.given} - {probe for probe, _ in answers.wrong}
    names, size = _names(answers.wrong, answers), noted_size(error)
    return TEXT("refuses", error=error_text(error), size=size, names=names, right=len(right))


def other_masks(answers: Answers) -> str:
    """Return that no mask known here is taken."""
    return first_wrong("other masks", answers, axes=", ".join(CHOICES["mask_shape"]))


def at_the_edges(answers: Answers, *, in_full: bool) -> tuple[Guess, str]:
    """Return what differs at the edges only and what it means; `in_full` with the causes."""
    groups: dict[Guess, list[Question]] = {}
    for question in answers.failed:
        known = (guess for guess in groups if guess and answers.agrees(question, guess))
        guess = next(known, ()) or answers.explain(question, limit=1)  # which takes long
        if not guess:  # NaN, say, is the same exhibit's wherever it comes out
            guess = next((g for g in groups if answers.shows(g, question)), ())
        groups.setdefault(guess, []).append(question)
    sentences = []
    for guess, questions in groups.items():
        if guess:
            like = f"It behaves like {_listed(guess)} ({_names(questions, answers)})."
            means = answers.edge(questions[0])
            why = f"{guess[0].cause} " if in_full else ""
            why += f"{guess[0].hint}{convention_hints(guess, answers.tested)}"
            sentences.append(f"{like} {means} {why}")
        else:
            sentences += [
                f"It differs {_says(q)}: {_difference(q, answers)} {answers.edge(q)}"
                for q in questions
                if q[1] is CALL_MODES[0] or answers.right((q[0], CALL_MODES[0]))
            ]
    lines = [sentence.strip() for sentence in sentences]
    if len(lines) > 1:
        lines = [ITEM + line for line in lines]
    return tuple(exhibit for guess in groups for exhibit in guess), "\n".join(lines)


def limits(answers: Answers, passed: bool) -> str:
    """Return, in a line each, what wasn't tested, and what the candidate was taken for."""
    return "\n".join(_limits(answers, passed))


def _limits(answers: Answers, passed: bool) -> Iterator[str]:
    tested, signature = answers.tested, answers.tested.first.signature
    if tested.random_in_training:
        yield TEXT("random in training")
    if passed:
        long = any(probe.name == "a long sequence" for probe, _ in answers.given)
        yield TEXT("tested with", tokens=LONGEST if long else USUAL)
        if tested.extra_parameters:
            yield TEXT("extra parameters", names=name_list(tested.extra_parameters))
    missing = Counter(_lacking(probe, tested) for probe in answers.not_run)
    pasts = [name for name in signature.unused if known_as(name, ROLES) in PASTS]
    if signature.foreign_cache:
        del missing[_LACKING["cache"]]
        yield TEXT("foreign cache", names=f" ({', '.join(pasts)})" if pasts else "")
    if missing:
        counted = (f"{what} ({n} questions)" if n > 1 else what for what, n in missing.items())
        yield TEXT("not offered", missing=", ".join(counted))
    unused = [name for name in signature.unused if name not in pasts]
    if unused:
        yield TEXT("defaults", names=name_list(unused))
    if any("normalization" in words for words in tested.taken):
        yield TEXT("norms")
    if tested.first.setting.mask_replaces:
        yield TEXT("mask replaces")
    if "second" not in tested.adapters:
        sizes = tested.first.setting.sizes
        yield TEXT("one size", d_model=sizes.d_model, num_heads=sizes.num_heads)
    yield f"Taken as: {'; '.join(tested.taken)}."


def as_html(heading: str, message: str, passed: bool) -> str:
    """Return a diagnosis as HTML: a list of findings, a paragraph for each other line."""
    lines = message.split("\n")
    items = [line.removeprefix(ITEM) for line in lines if line.startswith(ITEM)]
    first, *others = [line for line in lines if not line.startswith(ITEM)]
    found = f" {escape(first)}" if not items else ""
    listed = "".join(f"<li>{escape(item)}</li>" for item in items)
    below = "".join(f"<p>{escape(line)}</p>" for line in ([first] if items else []) + others)
    return (
        f'<div class="verdict verdict-{"passed" if passed else "open"}">'
        f"<p><strong>{heading}</strong>{found}</p>{listed and f'<ul>{listed}</ul>'}{below}</div>"
    )


def _lacking(probe: Probe, tested: ModuleUnderTest) -> str:
    """Return what a probe needs and a module doesn't take."""
    signature = tested.first.signature
    needs = [need for need in probe.needs if need not in tested.first.takes]
    if needs and needs[0] in ("mask", "masks") and "mask" not in signature.roles:
        return _LACKING["mask"]
    sizes = [size for size in probe.sizes if size not in tested.adapters]
    return _LACKING[(needs or sizes or ["weights"])[-1]]


def _listed(exhibits: Guess) -> str:
    return " and ".join(f'"{exhibit.name}"' for exhibit in exhibits)


def _names(questions: list[Question], answers: Answers) -> str:
    """Return each probe's name once; and the mode, where another mode is right."""
    names: dict[Probe, str] = {}
    for probe, mode in questions:
        first = answers.given.keys() & {(probe, CALL_MODES[0])}
        elsewhere = mode is not CALL_MODES[0] and first and answers.right((probe, CALL_MODES[0]))
        names.setdefault(probe, f"{probe.name} {mode.says}" if elsewhere else probe.name)
    return ", ".join(names.values())


def _says(question: Question) -> str:
    probe, mode = question
    return f"{probe.says} {mode.says}".strip()


def _difference(question: Question, answers: Answers) -> str:
    probe, _ = question
    given = answers.given[question]
    if probe.differs and not isinstance(given, Exception):
        right = answers.behavior((), probe)
        assert not isinstance(right, Exception)
        pairs = zip(cycle(probe.differs), given, right, strict=False)
        wrong = (
            (words, a, b) for words, a, b in pairs if not reference.agree([a], [b], probe.tolerance)
        )
        words, a, b = next(wrong)
        return words or reference.difference([a], [b], probe.tolerance, probe.of)
    return reference.difference(given, answers.behavior((), probe), probe.tolerance, probe.of)
