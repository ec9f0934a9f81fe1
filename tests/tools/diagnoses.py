"""Tables of attentions that are diagnosed: the verdict on each, and what is told of it.

A diagnosis is held to what it found out, never to its words. A row of a table says so in short:

    "no scale": (Unscaled, {}, "meant", "only: no scale", "scale=1"),

is a candidate, the options of `diagnose`, a verdict, and any number of facts. A fact is one of

    "only: no scale", "exhibit: no scale"  the only exhibit, one of the exhibits; "no exhibit"
    "first: padding", "fails: padding"     the first probe that fails, one of those that fail
    "skipped: padding"                     a probe that couldn't run
    "taken: [B, T]"                        letters in what it was taken for
    "report: leaking"                      the text below this heading of src/attndoctor/report.md
    "padding: edge"                        the text of a probe (src/attndoctor/probes.md)

or letters that stand in the message: a number, a name, a line of code. With "not " before it, it
isn't so.
"""

import re
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

import pytest

from attndoctor import CallError, Diagnosis, diagnose
from attndoctor.diagnosis import BROKEN, CANNOT_BE_ASKED, NOT_FINISHED, UNLESS_MEANT
from attndoctor.museum import named
from attndoctor.probes import PROBES
from attndoctor.support.texts import read_texts
from tools import ROOT

HEADINGS = {
    BROKEN: "broken", UNLESS_MEANT: "meant", CANNOT_BE_ASKED: "not asked",
    NOT_FINISHED: "not finished",
}  # fmt: skip
FILES = sorted((ROOT / "src" / "attndoctor").glob("*.md"))


def verdict(diagnosis: Diagnosis) -> str:
    """Return the verdict in a word or two, whatever its heading is called."""
    return HEADINGS.get(diagnosis.heading) or ("at the edges" if diagnosis.failed else "healthy")


def _pattern(text: str) -> re.Pattern[str]:
    """Match a text with anything in its braces."""
    parts = [(re.escape(said), field) for said, field, *_ in Formatter().parse(text)]
    return re.compile("".join(s + ("" if f is None else ".*?") for s, f in parts), re.DOTALL)


TEXTS = {
    f"{file.stem}: {heading}": _pattern(text)
    for file in FILES if file.stem not in ("names", "probes")
    for heading, text in read_texts(str(file)).items()
} | {
    f"{probe.name}: {kind}": _pattern(re.sub("([{}])", r"\1\1", getattr(probe, kind)))
    for probe in PROBES for kind in ("says", "edge", "error", "often") if getattr(probe, kind)
}  # fmt: skip
_OF_A_FILE = re.compile(f"({'|'.join(file.stem for file in FILES)}): ")


def says(message: str, fact: str) -> bool:
    """Return whether a message has a text, named by its heading, or letters."""
    if _OF_A_FILE.match(fact) or fact in TEXTS:
        return bool(TEXTS[fact].search(message))
    return fact in message


def is_so(diagnosis: Diagnosis, fact: str) -> bool:
    """Return whether a fact (see above) holds of a diagnosis."""
    if fact.startswith("not "):
        return not is_so(diagnosis, fact.removeprefix("not "))
    kind, _, name = fact.partition(": ")
    match kind:
        case "only":
            return diagnosis.exhibits == (named(name),)
        case "exhibit":
            return named(name) in diagnosis.exhibits
        case "no exhibit":
            return not diagnosis.exhibits
        case "first":
            return diagnosis.failed[:1] == (name,)
        case "fails":
            return name in diagnosis.failed
        case "skipped":
            return name in diagnosis.not_run
        case "taken":
            return name in diagnosis.taken + "."
    return says(diagnosis.message, fact)


def ask(candidate: Any, wanted: str, *facts: str, **options: Any) -> Diagnosis:
    """Diagnose, and hold the diagnosis to its verdict ("" for any) and to facts."""
    diagnosis = diagnose(candidate, **options)
    assert wanted in ("", verdict(diagnosis)), diagnosis
    passes = {"healthy": True, "at the edges": not options.get("edges")}
    assert bool(diagnosis) == passes.get(verdict(diagnosis), False)
    for fact in facts:
        assert is_so(diagnosis, fact), (fact, diagnosis)
    return diagnosis


def diagnoses(table: Mapping[str, tuple[Any, ...]]) -> Callable[..., None]:
    """Return the test that each row of a table (see above) is so."""

    @pytest.mark.parametrize("name", table)
    def test(name: str) -> None:
        candidate, options, wanted, *facts = table[name]
        ask(candidate, wanted, *facts, **options)

    return test


def refusals(table: Mapping[str, tuple[Any, ...]]) -> Callable[..., None]:
    """Return the test that each call of a table is an error, which says what the table says.

    A row is a candidate, the options, the error's type, and headings or letters.
    """

    @pytest.mark.parametrize("name", table)
    def test(name: str) -> None:
        candidate, options, kind, *facts = table[name]
        with pytest.raises(kind) as error:
            diagnose(candidate, **options)
        assert (type(error.value) is CallError) == (kind is CallError)
        for fact in facts:
            assert says(str(error.value), fact), (fact, error.value)

    return test
