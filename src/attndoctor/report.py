"""The sentences of a diagnosis."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import cycle

from attndoctor.call import PASTS, PATHS
from attndoctor.conventions import Convention, Found, convention_hints, other_scale
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
from attndoctor.options import CHOICES, Clock, error_text, name_list, noted_size
from attndoctor.probes import SELF_ATTENTION, Probe
from attndoctor.questions import LONGEST, USUAL
from attndoctor.reference import (
    Answer,
    agree,
    difference,
    have_one_shape,
    outputs_agree,
    side_by_side,
)

ITEM = "* "  # before each of several findings
_LACKING = {  # what isn't taken, by what a probe needs or by the sizes of its module
    "mask": "masks", "masks": "masks for each sample", "two sequences": "a second sequence",
    "key_mask": "padding", "causal": "causal", "two limits": "two limits at once",
    "a limit": "masks",
    "weights": "weights", "cache": "a cache", "grouped": "fewer key heads than query heads",
    "dropout": "dropout",
    "head masks": "masks for each head", "defaults": "keys or values left out",
    "differentiable weights": "weights that gradients flow through",
    "long": f"{LONGEST} tokens", "padding of keys": "padding of a second sequence",
    "masks of keys": "masks of a second sequence",
}  # fmt: skip
_LEAKING = (
    " If the number that stands for minus infinity isn't low enough, a little comes through of "
    "what is forbidden: mask the scores with -inf."
)
_OF_OTHER_SAMPLES = (
    " A sample without padding is wrong too, as where masks meet other samples' heads: on one axis "
    "[B h] stands mask.repeat_interleave(h, 0), and on [h B] mask.repeat(h, 1, 1)."
)
ASKED_ONCE_MORE = " Asked the same once more, it gives another answer"
OTHER_PATH = "It is right {}: its paths don't do the same."
_LIMITS = {"mask", "masks", "key_mask", "causal", "a limit", "two limits"}


def healthy(answers: Answers) -> str:
    """Say that no difference was found."""
    names = answers.names(list(answers.given))
    return f"The same as attnlib's attention, asked in {len(names)} ways: {'; '.join(names)}."


def not_causal(sign: str, message: str) -> str:
    """Say that tokens see those after them, though something suggests a triangle."""
    says = (
        f"Not causal: tokens see those that come after them, though {sign}. If they must not, the "
        "triangle is lost on the way (masked_fill returns a new tensor, which must be kept): say "
        'causal="always", and that is held against it. If they may, say causal="when asked".'
    )
    between = "\n" if message.startswith(ITEM) else " "
    return f"{says}{between}{message}"


def behaves_like(exhibits: Guess, answers: Answers) -> str:
    """Say which exhibits explain what is wrong, and what they leave unexplained."""
    first = answers.wrong[0]
    message = f"It behaves like {_listed(exhibits)}, first seen {_says(first)}. "
    elsewhere = _right_elsewhere(first, answers)
    message += f"{elsewhere} Look for the condition that parts them; or: " if elsewhere else ""
    return message + " ".join(f"{exhibit.cause} {exhibit.hint}" for exhibit in exhibits)


def _right_elsewhere(question: Question, answers: Answers) -> str:
    """Say on which other path an answer is right, if there is one."""
    other = next((path for path in PATHS if answers.right_on(question[0], path)), None)
    return OTHER_PATH.format(other.says or "in eval(), with weights and gradients") if other else ""


def what_more(exhibits: Guess, answers: Answers) -> str:
    """Say what exhibits leave unexplained."""
    rest = [question for question in answers.failed if not answers.agrees(question, exhibits)]
    if not rest:
        return ""
    return f" There is more ({_names(rest, answers)}): fix this first, and diagnose again."


def if_meant(answers: Answers, exhibits: Guess, conventions: Sequence[Convention]) -> str:
    """Say by which conventions all is right."""
    first = answers.wrong[0]
    if exhibits:
        message = behaves_like(exhibits, answers)
    else:
        message = f"Not the same {_says(first)}: {_difference(first, answers)}"
    message += "".join(f" {convention.says}" for convention in conventions)
    all_of_this = "all of this" if len(conventions) > 1 else "this"
    return f"{message} With {all_of_this} meant, nothing that was asked is wrong."


def wrong_by_another_formula(formula: Found, answers: Answers) -> str:
    """Say what is wrong in spite of another formula, which is right on one sequence."""
    first = answers.wrong[0]
    return (
        f"On one sequence its answers are those of another formula: {formula.says}. But by that "
        f"formula too it is wrong {_says(first)}: {_difference(first, answers)}"
    )


def keeps_something(answers: Answers) -> str:
    """Say that an answer depends on earlier calls."""
    first = answers.wrong[0]
    return (
        f"Right at first, and wrong {_says(first)} once other things were asked: "
        f"{_difference(first, answers)} So it keeps something of earlier calls (a mask, keys, how "
        "many there were), and uses it for other inputs. What is kept must be kept "
        f"for one input only.{f'{ASKED_ONCE_MORE}.' if answers.varies else ''}"
    )


def out_of_time(clock: Clock) -> str:
    """Say what was going on when the time was over."""
    return (
        f"Its {clock.seconds:g} seconds were over while {clock.doing}. Hand in a smaller or a "
        "faster one, or say seconds=..., with None for no limit (--seconds none)."
    )


def so_far(answers: Answers) -> str:
    """Say what was found in the questions that were asked."""
    number = len({probe for probe, _ in answers.given})
    ways = f"asked in {number} way{'s' if number > 1 else ''}"
    if not answers.wrong:
        return f"So far, {ways}, nothing is wrong."
    first = answers.wrong[0]
    return f"So far, {ways}, it is wrong {_says(first)}: {_difference(first, answers)}"


def in_no_known_way(answers: Answers) -> str:
    """Say what differs if no exhibit does the same."""
    first = answers.wrong[0]
    given = answers.given[first]
    if isinstance(given, Exception):
        return _raises(first, given, answers) + _reservations(answers)
    combination = WrongCombination.first(first, answers)
    where = f" ({combination.says})" if combination else ""
    message = (
        f"Wrong {_says(first)}{where}, in a way that no exhibit is: {_difference(first, answers)}"
        f"{_of_limits(first, combination, answers)}"
    )
    if not (combination and combination.dropped):
        message += _of_idle_arguments(first[0], answers.tested)
    elsewhere = _right_elsewhere(first, answers)
    message += f" {elsewhere}" if elsewhere else ""
    at_once = first[0] is SELF_ATTENTION
    if at_once and answers.heads_off:
        message += f" {_of_heads(answers.heads_off)}"
    shape = _of_shape(first, answers)
    if shape is not None:
        return message + shape
    if at_once and not answers.shows_weights:
        message += (
            " Return the weights beside the output, and a diagnosis tells whether they are right."
        )
    if first[0].often:
        message += f" {first[0].often}"
    if at_once and not _weights_alone(first, answers):
        message += _of_another_formula(answers)
    return message + _reservations(answers)


def _raises(question: Question, error: Exception, answers: Answers) -> str:
    """Say which error was raised, and where."""
    size = "" if question[0] is SELF_ATTENTION else noted_size(error)
    where = f" ({size})" if size else ""
    message = f"Wrong {_says(question)}{where}: {_difference(question, answers)}"
    if AMBIGUOUS in str(error):
        message += (
            " A tensor of several numbers is neither true nor false: ask `if mask is not None`, "
            "and not `if mask`."
        )
    return message


def _of_limits(question: Question, combination: WrongCombination | None, answers: Answers) -> str:
    """Say what seems to be wrong with a limit, or with the returned weights alone."""
    message, probe = "", question[0]
    near = combination.is_near if combination else answers.mostly_right(question)
    if combination and combination.dropped:
        message = f" {combination.dropped}"
    elif _weights_alone(question, answers):
        message = (
            " Its output is right: the weights that it returns aren't those that it uses. Return "
            "what the values are weighted with, after the mask."
        )
    elif combination and combination.spoils_whole_samples:
        message = _OF_OTHER_SAMPLES
    elif near and probe.of == "the output" and _LIMITS & set(probe.needs):
        message = "" if "cache" in probe.needs else _LEAKING
    if _switched_off(question, answers.tested):
        message += (
            " It is right without the triangle: this mask switches causality off, and tokens see "
            "what comes after them. Put the triangle and the mask together (mask & triangle), and "
            "hand over both."
        )
    return message


def _of_idle_arguments(probe: Probe, tested: ModuleUnderTest) -> str:
    """Say which arguments have no effect."""
    roles, idle = tested.first.signature.roles, tested.idle_arguments(probe)
    if not idle:
        return ""
    names = " and ".join(f"`{roles[role]}`" for role in idle)
    message = f" Its {names} {'have' if len(idle) > 1 else 'has'} no effect."
    if "causal" in idle and tested.changed(always_causal=True).right(SELF_ATTENTION):
        message += ' If it is always causal on purpose, say causal="always".'
    return message


def _reservations(answers: Answers) -> str:
    """Say that answers vary, or that not all exhibits were tried."""
    message = ""
    if answers.varies:
        message = f"{ASKED_ONCE_MORE}: something in it is random in eval(), or made each time."
    if not answers.narrow:
        message += (
            f" Two bugs at once are looked for up to d_model={NARROW}: hand in the class, or "
            "a smaller module."
        )
    return message


def _of_shape(question: Question, answers: Answers) -> str | None:
    """Say what an output of another shape seems to be; None if its shape is right."""
    pairs = side_by_side(answers.given[question], answers.behavior((), question[0]))
    unlike = ((a, weights) for (a, _), (b, weights) in pairs if not have_one_shape(a, b))
    ours, weights = next(unlike, (None, None))
    if ours is None:
        return None
    if weights is not None and ours.shape == weights.shape:
        return " These are the axes of weights: return the values, weighted with them."
    return ""


def _of_heads(heads: list[int]) -> str:
    """Say which heads alone are wrong."""
    which = ", ".join(map(str, heads))
    are = "head {} alone is" if len(heads) == 1 else "heads {} alone are"
    return f"Counted from 0, {are.format(which)} wrong: what is done to heads differs among them."


def _weights_alone(question: Question, answers: Answers) -> bool:
    """Return whether an answer is right but for the weights."""
    probe, _ = question
    if probe.of != "the output":
        return False
    return outputs_agree(answers.given[question], answers.behavior((), probe), probe.tolerance)


def _switched_off(question: Question, tested: ModuleUnderTest) -> bool:
    """Return whether an always causal module is right with a limit if taken for not causal."""
    if not tested.first.setting.always_causal or not _LIMITS & set(question[0].needs):
        return False
    return tested.changed(always_causal=False).right(*question)


def _of_another_formula(answers: Answers) -> str:
    """Say what may explain an answer that is wrong on one sequence already."""
    if not answers.wrong_at_once or answers.varies:
        return ""
    if answers.tested.first.setting.always_causal and answers.mostly_right(FIRST_QUESTION):
        return " Causal attention gives nearly the same." + _LEAKING
    scale = other_scale(answers)
    everywhere = not answers.heads_off and all(
        question in answers.failed for question in answers.given if question[0] is SELF_ATTENTION
    )
    if answers.nearly_right and everywhere and not scale:
        return (
            " That is little, and much the same in all heads: a lower precision inside (float16, "
            "bfloat16) gives as much, and so do softcapped scores. If neither is meant, a number "
            "is slightly off between the dot products and the weights."
        )
    if answers.right_on_equal_tokens:
        found = f" Dot products are multiplied by {scale}." if scale else ""
        return (
            f"{found} Equal tokens come out right, so its projections and the sums of its weights "
            "are: look at how scores become weights. If another formula is meant, this isn't the "
            "attention of the paper, and can't be compared with it."
        )
    return (
        " Equal tokens come out wrong too: rows of its weights don't sum to 1, or something is "
        "wrong in its projections. If another formula is meant, this isn't the attention of the "
        "paper, and can't be compared with it."
    )


def environment_lacks(error: Answer) -> str:
    """Say that a module needs a package, a device or a dtype that is missing."""
    assert isinstance(error, Exception)
    return (
        f"It raises {error_text(error)}. That is about the machine, and not about the attention: "
        "it is tested on the CPU, with weights and tokens in float32, and for gradients. Install "
        "what is missing, or hand in the path through it that runs so (its eager one), and ask "
        "again."
    )


def refuses(answers: Answers) -> str:
    """Say on what a module raises an error on purpose, where all else is right."""
    error = answers.given[answers.wrong[0]]
    assert isinstance(error, Exception)
    right = len({probe for probe, _ in answers.given} - {probe for probe, _ in answers.wrong})
    return (
        f"It raises {error_text(error)}, on purpose, first on {noted_size(error)}. That is loud, "
        f"and gives nobody wrong numbers. Asked in {right} other ways it is right; what it refuses "
        f"couldn't be asked ({_names(answers.wrong, answers)}). Hand in a module without this "
        "limit, and ask again."
    )


def other_masks(answers: Answers) -> str:
    """Say that no mask known here is taken."""
    difference = _difference(answers.wrong[0], answers)
    return (
        "Without a mask its answers are attention's, but with one of any axes known here "
        f"({', '.join(CHOICES['mask_shape'])}) {difference} If its mask is meant to have others, "
        "hand in a module that turns one of these into its own, as mask.permute(1, 2, 0) turns "
        "[B, T, T] into [T, T, B]."
    )


def at_the_edges(answers: Answers, *, in_full: bool) -> tuple[Guess, str]:
    """Say what differs at the edges only: like which exhibit, what it means, how to fix it.

    Say the cause too, `in_full`, if edges count.
    """
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
                if q[1] is PATHS[0] or answers.right((q[0], PATHS[0]))
            ]
    lines = [sentence.strip() for sentence in sentences]
    if len(lines) > 1:
        lines = [ITEM + line for line in lines]
    return tuple(exhibit for guess in groups for exhibit in guess), "\n".join(lines)


def limits(answers: Answers, passed: bool) -> str:
    """Say in a line each what wasn't tested, and what the candidate was taken for."""
    lines, tested = [], answers.tested
    if tested.random_in_training:
        lines.append("Not tested in train(), where it is random though its dropout is 0.")
    if passed:
        long = any(probe.name == "a long sequence" for probe, _ in answers.given)
        lines.append(
            f"Tested with random weights, on 1 to {LONGEST if long else USUAL} tokens, on the CPU: "
            "longer sequences, trained weights and a GPU's kernels may show more."
        )
        if tested.extra_parameters:
            lines.append(
                f"As built, its output doesn't depend on {name_list(tested.extra_parameters)}: "
                "what they add once they are trained was not tested."
            )
    missing = Counter(_lacking(probe, tested) for probe in answers.not_run)
    if tested.first.signature.foreign_cache:
        del missing[_LACKING["cache"]]
        lines.append(f"Not tested: a cache of another kind than attnlib's KVCache{_pasts(tested)}.")
    if missing:
        counted = (f"{what} ({n} questions)" if n > 1 else what for what, n in missing.items())
        lines.append(
            f"Not tested, because it doesn't offer them under a known name: {', '.join(counted)}."
        )
    unused = [n for n in tested.first.signature.unused if known_as(n, ROLES) not in PASTS]
    if unused:
        lines.append(f"Left at their defaults: {name_list(unused)} of its forward, unknown here.")
    if any("normalization" in words for words in tested.taken):
        lines.append("Not tested: where its normalization acts, for it was set aside.")
    if tested.first.setting.mask_replaces:
        lines.append(
            "Without a mask it is causal, and with one it isn't: that is right where every mask "
            "has the triangle in it. Where one hasn't, tokens see what comes after them, as in the "
            'exhibit "a mask switches causality off".'
        )
    if "second" not in tested.adapters:
        sizes = tested.first.setting.sizes
        lines.append(
            f"Tested at one size only: d_model={sizes.d_model}, num_heads={sizes.num_heads}."
        )
    return "\n".join([*lines, f"Taken as: {'; '.join(tested.taken)}."])


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
    """Name what a probe needs and a module doesn't take."""
    signature = tested.first.signature
    needs = [need for need in probe.needs if need not in tested.first.takes]
    if needs and needs[0] in ("mask", "masks") and "mask" not in signature.roles:
        return _LACKING["mask"]
    sizes = [size for size in probe.sizes if size not in tested.adapters]
    return _LACKING[(needs or sizes or ["weights"])[-1]]


def _pasts(tested: ModuleUnderTest) -> str:
    """Name the arguments for such a cache, which are left at their defaults."""
    unused = tested.first.signature.unused
    names = [name for name in unused if known_as(name, ROLES) in PASTS]
    return f" ({', '.join(names)})" if names else ""


def _listed(exhibits: Guess) -> str:
    return " and ".join(f'"{exhibit.name}"' for exhibit in exhibits)


def _names(questions: list[Question], answers: Answers) -> str:
    """Name each probe once; and the path, where another path is right."""
    names: dict[Probe, str] = {}
    for probe, path in questions:
        first = answers.given.keys() & {(probe, PATHS[0])}
        elsewhere = path is not PATHS[0] and first and answers.right((probe, PATHS[0]))
        names.setdefault(probe, f"{probe.name} {path.says}" if elsewhere else probe.name)
    return ", ".join(names.values())


def _says(question: Question) -> str:
    probe, path = question
    return f"{probe.says} {path.says}".strip()


def _difference(question: Question, answers: Answers) -> str:
    probe, _ = question
    given = answers.given[question]
    if probe.differs and not isinstance(given, Exception):
        right = answers.behavior((), probe)
        assert not isinstance(right, Exception)
        pairs = zip(cycle(probe.differs), given, right, strict=False)
        wrong = ((words, a, b) for words, a, b in pairs if not agree([a], [b], probe.tolerance))
        words, a, b = next(wrong)
        return words or difference([a], [b], probe.tolerance, probe.of)
    return difference(given, answers.behavior((), probe), probe.tolerance, probe.of)
