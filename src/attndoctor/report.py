"""What a diagnosis says, in sentences."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import cycle

from attndoctor.asking import PATHS
from attndoctor.cells import Cell
from attndoctor.comparing import agree, difference
from attndoctor.examine import USUAL
from attndoctor.formulas import Found, other_scale
from attndoctor.forward import PASTS
from attndoctor.meant import Convention, hints
from attndoctor.names import ROLES, known_as
from attndoctor.naming import AMBIGUOUS, NARROW, Answers, Guess, Question
from attndoctor.patient import Patient
from attndoctor.probes import PROBES, Answer, Probe
from attndoctor.questions import LONGEST
from attndoctor.refusing import noted_size
from attndoctor.told import CHOICES, Told, said, some

ITEM = "* "  # before each of several findings
_LACKING = {  # what isn't taken, by what a probe needs or by the sizes of its module
    "mask": "masks", "masks": "masks for each sample", "two sequences": "a second sequence",
    "key_mask": "padding", "causal": "causal", "two limits": "two limits at once",
    "a limit": "masks",
    "weights": "weights", "cache": "a cache", "grouped": "fewer key heads than query heads",
    "dropping": "dropout",
    "head masks": "masks for each head", "defaults": "keys or values left out",
    "differentiable weights": "weights that gradients flow through",
    "long": f"{LONGEST} tokens", "padding of keys": "padding of a second sequence",
    "masks of keys": "masks of a second sequence",
}  # fmt: skip
ORDER_INSIDE = (
    "Its answer isn't attention's, and depends on the order of the tokens: equal tokens come out "
    "right, but when some change places, another one's output moves. If that is meant (positions, "
    "relative biases, a window), hand it in without, and ask again. If it isn't, tokens are mixed "
    "up somewhere between the projections and the softmax."
)
NORMALIZED_INSIDE = (
    "Its answer isn't attention's, and stays the same when W_q is made twice as long: queries are "
    "normalized before the dot product (QK-norm). That differs from the paper, and is fine if it "
    "is meant. To have the rest asked, hand it in without, or with that normalization as a module "
    "(nn.RMSNorm, nn.LayerNorm), which is set aside."
)
RESIDUAL_INSIDE = (
    "Its answer isn't attention's, but it is with the tokens taken off: x is added inside. That is "
    "the residual of the block around attention. Hand it in without, and ask again."
)
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
    asked = answers.names(list(answers.given))
    return f"The same as attnlib's attention, asked in {len(asked)} ways: {'; '.join(asked)}."


def not_causal(sign: str, message: str) -> str:
    """Say that nothing keeps tokens from those after them, though there is a sign of a triangle."""
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
    """Say on which other path a question is answered rightly, if there is one."""
    if isinstance(answers.given[question], Exception):
        return ""
    other = next((path for path in PATHS if answers.right_on(question[0], path)), None)
    return OTHER_PATH.format(other.says or "in eval(), with weights and gradients") if other else ""


def what_more(exhibits: Guess, answers: Answers) -> str:
    """Say what exhibits leave unexplained."""
    rest = [question for question in answers.failed if not answers.agrees(question, exhibits)]
    if not rest:
        return ""
    return f" There is more ({_names(rest, answers)}): fix this first, and diagnose again."


def if_meant(answers: Answers, exhibits: Guess, conventions: Sequence[Convention]) -> str:
    """Say what must be meant for all to be right."""
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
        f"On one sequence its answers are those of another formula: {formula}. But by that formula "
        f"too it is wrong {_says(first)}: {_difference(first, answers)}"
    )


def keeps_something(answers: Answers) -> str:
    """Say that an answer hangs on what was asked before."""
    first = answers.wrong[0]
    return (
        f"Right at first, and wrong {_says(first)} once other things were asked: "
        f"{_difference(first, answers)} So it keeps something of earlier calls (a mask, keys, how "
        "many there were), and uses it where it is asked something else. What is kept must be kept "
        f"for one input only.{f'{ASKED_ONCE_MORE}.' if answers.varies else ''}"
    )


def in_no_known_way(answers: Answers) -> str:
    """Say what differs where no exhibit does."""
    first = answers.wrong[0]
    error = answers.given[first]
    raised = isinstance(error, Exception)
    way = "" if raised else ", in a way that no exhibit is"
    cell = None if raised else Cell.first_wrong(first, answers)
    where = f" ({cell.says})" if cell else ""
    if isinstance(error, Exception) and first[0] is not PROBES[0] and noted_size(error):
        where = f" ({noted_size(error)})"
    message = f"Wrong {_says(first)}{where}{way}: {_difference(first, answers)}"
    if raised and AMBIGUOUS in str(error):
        message += (
            " A tensor of several numbers is neither true nor false: ask `if mask is not None`, "
            "and not `if mask`."
        )
    dropped = cell.dropped if cell else None
    near = not raised and first[0].of == "the output"
    near = near and (cell.is_near if cell else answers.mostly_right(first))
    spoils = cell is not None and cell.spoils_whole_samples
    if dropped:
        message += f" {dropped}"
    elif not raised and _weights_alone(first, answers):
        message += (
            " Its output is right: the weights that it returns aren't those that it uses. Return "
            "what the values are weighted with, after the mask."
        )
    elif spoils:
        message += _OF_OTHER_SAMPLES
    elif near and _LIMITS & set(first[0].needs) and "cache" not in first[0].needs:
        message += _LEAKING
    if not raised and _switched_off(first, answers.patient):
        message += (
            " It is right without the triangle: whoever hands over this mask switches causality "
            "off, and tokens see what comes after them. Put the triangle and the mask together "
            "(mask & triangle), and hand over both."
        )
    elsewhere = _right_elsewhere(first, answers)
    message += f" {elsewhere}" if elsewhere else ""
    if first[0] is PROBES[0] and not raised and answers.heads_off:
        message += f" {_of_heads(answers.heads_off)}"
    shape = _of_shape(first, answers)
    if shape is not None:
        return message + shape
    if first[0] is PROBES[0] and not raised and not answers.shows_weights:
        message += (
            " Return the weights beside the output, and a diagnosis tells whether they are right."
        )
    if first[0].often and not raised:
        message += f" {first[0].often}"
    if first[0] is PROBES[0] and not raised and not _weights_alone(first, answers):
        message += _of_another_formula(answers)
    if answers.varies:
        message += f"{ASKED_ONCE_MORE}: something in it is random in eval(), or made each time."
    if not answers.narrow:
        message += (
            f" Two bugs at once are looked for up to d_model={NARROW}: hand in the class, or "
            "a smaller module."
        )
    return message


def _of_shape(question: Question, answers: Answers) -> str | None:
    """Say what an output of another shape seems to be; None if its shape is right."""
    given, right = answers.given[question], answers.behavior((), question[0])
    if isinstance(given, Exception) or isinstance(right, Exception):
        return None
    for (ours, _), (theirs, weights) in zip(given, right, strict=True):
        if ours is None or theirs is None or ours.shape == theirs.shape:
            continue
        if weights is not None and ours.shape == weights.shape:
            return " These are the axes of weights: return the values, weighted with them."
        return ""
    return None


def _of_heads(heads: list[int]) -> str:
    """Say which heads alone are off."""
    which = ", ".join(map(str, heads))
    are = "head {} alone is" if len(heads) == 1 else "heads {} alone are"
    return f"Counted from 0, {are.format(which)} wrong: what is done to heads differs among them."


def _weights_alone(question: Question, answers: Answers) -> bool:
    """Tell whether an answer is right but for the weights."""
    probe, _ = question
    given, right = answers.given[question], answers.behavior((), probe)
    if isinstance(given, Exception) or isinstance(right, Exception) or probe.of != "the output":
        return False
    ours, theirs = ([(output, None) for output, _ in answer] for answer in (given, right))
    return agree(ours, theirs, probe.tolerance)


def _switched_off(question: Question, patient: Patient) -> bool:
    """Tell whether an always causal module is right on a limit if it isn't causal behind it."""
    if not patient.first.setting.always_causal or not _LIMITS & set(question[0].needs):
        return False
    return patient.changed(always_causal=False).right(*question)


def _of_another_formula(answers: Answers) -> str:
    """Say what may be behind an answer that is wrong on one sequence already."""
    patient, plain = answers.patient, (PROBES[0], PATHS[0])
    if plain not in answers.failed or answers.varies:
        return ""
    if patient.first.setting.always_causal and answers.mostly_right(plain):
        return " Causal attention gives nearly the same." + _LEAKING
    scale = other_scale(answers)
    everywhere = not answers.heads_off and all(
        question in answers.failed for question in answers.given if question[0] is PROBES[0]
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


def positions_inside(part: str, given: Answer) -> str:
    """Say why a module with positions inside can't be compared."""
    what = "Its answer isn't attention's"
    if isinstance(given, Exception):
        what = f"It raises {said(given)}"
    return (
        f"{what}, and {part!r} looks as if positions had a part in it (queries and keys turned, "
        "scores with a bias for each distance): hand in the module without them (cos = 1 and "
        "sin = 0 by arguments=..., a table of biases filled with 0), and ask again."
    )


def other_form(error: Exception) -> str:
    """Say that a module may take its tokens in another form."""
    return (
        f"It raises {said(error)}. If it takes its tokens in another form, such as several "
        "sequences in a tuple or images [B, C, H, W], hand in a module around it, whose "
        "forward(self, x) takes x [B, T, d] and hands it over so: return self.inner((x, x, x))."
    )


def machine_lacks(error: Exception) -> str:
    """Say that a module needs something that isn't there where it is asked."""
    return (
        f"It raises {said(error)}. That is about the machine, and not about the attention: it is "
        "asked on the CPU, with weights and tokens in float32, and for gradients. Install what is "
        "missing, or hand in the path through it that runs so (its eager one), and ask again."
    )


def left_out(error: Exception, names: tuple[str, ...]) -> str:
    """Say that a module may need what nothing is known of here."""
    listed = ", ".join(f"{name!r}: ..." for name in names)
    return (
        f"It raises {said(error)}, and was asked without {some(names)}, of which nothing is known "
        f"here: if it needs one of them, hand it over with arguments={{{listed}}}, and ask again."
    )


def norm_otherwise(error: Exception, inside: str | None) -> str:
    """Say that a normalization can't be set aside."""
    return (
        f"It raises {said(error)}: a normalization was set aside to ask the attention alone, and "
        f"it is needed otherwise than by calling it. {_hand_in(inside)}, and ask again."
    )


def other_dtype(error: Exception) -> str:
    """Say that a module doesn't stay in the dtype of its weights."""
    return (
        f"It raises {said(error)}. It is asked with weights and tokens in float32, and turns some "
        "of them into another dtype inside: hand in one that computes in the dtype of its tokens."
    )


def low_precision(dtypes: tuple[str, ...]) -> str:
    """Say that a module computes with fewer digits than its tokens have."""
    return (
        f"Its answer is attention's but for some digits, and it computes in {' and '.join(dtypes)} "
        "inside, whose roundings give as much: no smaller bug would show. Hand in one that "
        "computes in the dtype of its tokens, and ask again."
    )


def certain_sizes(error: Exception, sizes: str) -> str:
    """Say that a module takes certain numbers of samples or tokens only."""
    return (
        f"It raises {said(error)}, and is right on {sizes}: it takes certain sizes only. "
        "Hand in a module around it that pads its tokens to such a size, and ask again."
    )


def certain_widths(error: Exception, d_k: int, taken: int) -> str:
    """Say that a module takes certain widths of heads only."""
    return (
        f"It raises {said(error)}. That was with heads of {d_k} numbers; with heads of {taken} it "
        "answers. Hand in a built module, which is asked at its own sizes."
    )


def refuses(answers: Answers) -> str:
    """Say on what a module raises an error on purpose, where all else is right."""
    error = answers.given[answers.wrong[0]]
    assert isinstance(error, Exception)
    right = len({probe for probe, _ in answers.given} - {probe for probe, _ in answers.wrong})
    return (
        f"It raises {said(error)}, on purpose, first on {noted_size(error)}. That is loud, and "
        f"gives nobody wrong numbers. Asked in {right} other ways it is right; what it refuses "
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


def other_length(given: list[int], wanted: list[int]) -> str:
    """Say that an output for other tokens than the queries can't be compared."""
    return (
        f"Its output is {given} for tokens {wanted}: attention gives as many as there are queries. "
        "Hand in the part that does, or one that returns all of them."
    )


def left_by_load(names: tuple[str, ...]) -> str:
    """Say that the reader's function copied nothing into some parameters."""
    return (
        f"Its answer isn't attention's, but load left {some(names)} as before: let it copy "
        "into them too, and ask again."
    )


def bare_parameters(names: tuple[str, ...]) -> str:
    """Say that square parameters without a layer don't tell how they are used."""
    return (
        f"Its answer isn't attention's, and {some(names)} are parameters without a layer, whose "
        "shape doesn't tell how they are used: neither x @ W nor x @ W.T is right. Pass load=..., "
        "a function of (your module, a MultiHeadAttention) that copies the second one's weights "
        "into the first (its W_q.weight is used as x @ W_q.weight.T), and ask again."
    )


def more_than_attention(names: tuple[str, ...], inside: str | None) -> str:
    """Say which parameters the module has that attention hasn't."""
    return (
        f"Its answer isn't attention's, and it has parameters that attention hasn't "
        f"({some(names)}). {_hand_in(inside)}, or fill them with numbers that change nothing, and "
        "ask again."
    )


def _hand_in(inside: str | None) -> str:
    part = f", which seems to be its .{inside}" if inside else ""
    return f"Hand in the attention alone{part}"


def short_context(tokens: int, asked: int) -> str:
    """Say why a module that takes few tokens can't be compared."""
    return (
        f"It raises an error, and has a triangle for {tokens} tokens only: it is asked with up to "
        f"{asked}. Hand in one that is built for as many."
    )


def at_the_edges(answers: Answers, told: Told, *, in_full: bool) -> tuple[Guess, str]:
    """Say what differs at the edges only: like which exhibit, what that means, how to fix it.

    The cause too is told `in_full` to those for whom edges count.
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
            why += f"{guess[0].hint}{hints(guess, answers.patient, told)}"
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
    lines, patient = [], answers.patient
    if patient.random_in_training:
        lines.append("Not tested in train(), where it is random though its dropout is 0.")
    if passed:
        long = any(probe.name == "a long sequence" for probe, _ in answers.given)
        lines.append(
            f"Tested with random weights, on 1 to {LONGEST if long else USUAL} tokens, on the CPU: "
            "longer sequences, trained weights and a GPU's kernels may show more."
        )
        if patient.besides:
            lines.append(
                f"As built, its output doesn't depend on {some(patient.besides)}: what they add "
                "once they are trained was not tested."
            )
    missing = Counter(_lacking(probe, patient) for probe in answers.unasked)
    if patient.first.forward.foreign_cache:
        del missing[_LACKING["cache"]]
        lines.append(
            f"Not tested: a cache of another kind than attnlib's KVCache{_pasts(patient)}."
        )
    if missing:
        counted = (f"{what} ({n} questions)" if n > 1 else what for what, n in missing.items())
        lines.append(
            f"Not tested, because it doesn't offer them under a known name: {', '.join(counted)}."
        )
    unused = [n for n in patient.first.forward.unused if known_as(n, ROLES) not in PASTS]
    if unused:
        lines.append(
            f"Left at their defaults: {some(unused)} of its forward, of which nothing is known "
            "here."
        )
    if any("normalization" in words for words in patient.taken):
        lines.append("Not tested: where its normalization acts, for it was set aside.")
    if patient.first.setting.mask_replaces:
        lines.append(
            "Without a mask it is causal, and with one it isn't: that is right where every mask "
            "has the triangle in it. Where one hasn't, tokens see what comes after them, as in the "
            'exhibit "a mask switches causality off".'
        )
    if "second" not in patient.asked:
        sizes = patient.first.setting.sizes
        lines.append(
            f"Tested at one size only: d_model={sizes.d_model}, num_heads={sizes.num_heads}."
        )
    return "\n".join([*lines, f"Taken as: {'; '.join(patient.taken)}."])


def as_html(heading: str, message: str, passed: bool) -> str:
    """Write a diagnosis for pages: its findings as a list, and a paragraph for each other line."""
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


def _lacking(probe: Probe, patient: Patient) -> str:
    """Name what a probe needs and a patient doesn't take."""
    forward = patient.first.forward
    needs = [need for need in probe.needs if need not in patient.first.takes]
    if needs and needs[0] in ("mask", "masks") and "mask" not in forward.roles:
        return _LACKING["mask"]
    sizes = [size for size in probe.sizes if size not in patient.asked]
    return _LACKING[(needs or sizes or ["weights"])[-1]]


def _pasts(patient: Patient) -> str:
    """Name the arguments for such a cache, which are left at their defaults."""
    unused = patient.first.forward.unused
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
