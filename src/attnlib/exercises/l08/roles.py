"""A table of head roles, row by row: measured somewhere, at rest, or without a source."""

from typing import Any

from attnlib._verdict import Verdict
from attnlib.exercises._checking import correct, not_yet
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.exercises._on_page import Choice

TITLES = {
    3: "Head 3: pronouns and whom they mean",
    5: "Head 5: verbs and their objects",
    7: "Head 7: the neighboring word",
    9: "Head 9: words of similar meaning",
    11: "Head 11: punctuation and separators",
}
CHOICES = {
    "measured": "such heads were measured",
    "rest": "such looks were measured, and are better read as doing nothing",
    "none": "we know of no source",
}
REPAIRED = {3: "measured", 5: "measured", 7: "measured", 9: "none", 11: "rest"}

ROLE_MISTAKES = tuple(
    Mistake(REPAIRED | {head: verdict}, f"Head {head}: {hint}")
    for head, verdict, hint in (
        (3, "rest", "it looks at a noun, and the pronoun's answer depends on it. Look for what "
                    "was measured of BERT's layer 5."),
        (3, "none", "BERT's head for coreference was measured, in layer 5; and you saw pronouns "
                    "find their nouns on this page."),
        (5, "rest", "if such a head is muted, answers break. See the figure of muted heads."),
        (5, "none", "Clark and others, and Voita and others, measured such heads; each gives a "
                    "baseline."),
        (7, "rest", "a look one back carries something on: without it, no induction head."),
        (7, "none", "Voita and others call a head positional if nine in ten of its largest weights "
                    "have one offset, and found such heads."),
        (9, "measured", "where? Neither the works cited here nor our models show one."),
        (9, "rest", "such looks would first have to be measured. Do you know where?"),
        (11, "measured", "the looks are real, more than half of the attention in some layers. But "
                         "what is brought back? See what Clark and others suspect."),
        (11, "none", "there is one: more than half of BERT's attention in layers 6 to 10 goes to a "
                     "separator."),
    )
)  # fmt: skip


@exercise(mistakes=ROLE_MISTAKES, page=Choice(CHOICES, each=TITLES))
def role_table(answer: Any) -> Verdict:
    """Check a verdict on each row: {3: ..., 5: ..., 7: ..., 9: ..., 11: ...}.

    Each is one of "measured", "rest" and "none".
    """
    if not isinstance(answer, dict) or set(answer) != set(REPAIRED):
        return not_yet("A dictionary with the keys 3, 5, 7, 9 and 11 is wanted.")
    for head, verdict in answer.items():
        if verdict not in CHOICES:
            return not_yet(f"Head {head}: choose one of {', '.join(map(repr, CHOICES))}.")
    for mistake in ROLE_MISTAKES:
        if any(answer[head] == mistake.answer[head] != right for head, right in REPAIRED.items()):
            return not_yet(mistake.hint)
    return correct(
        "And every row still lacks what makes it a claim: a model, a layer, a score, a baseline."
    )
