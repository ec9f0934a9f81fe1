"""Usual mistakes, and reading them as a teacher writes them: `norms.md` has those of `norms.py`.

    # layer_norm(x, gain, bias, eps)

        standardized(x, -2, eps) * gain + bias
        standardized(x, 1, eps) * gain + bias
    Your mean runs over the tokens, so one token's result depends on its neighbors. ...

* A heading begins a section, which the check of its name reads. In parentheses it has the
  arguments of the functions below; without them, the answers below are values: numbers, a choice.
* A line that is indented by four spaces is a wrong answer: a Python expression of the arguments and
  of what `norms.py` has defined so far. It goes on in lines that are indented further. A function
  that needs several statements is written whole, `def` and all. A line may hold several answers,
  with commas between. Of numbers in rows, `whole(numbers)` are a mistake only where all rows are
  theirs.
* The text below is the hint for each of the answers above it. A blank line ends it.
* The name of a function, or that in `name = answer`, is the mistake's. Checks that choose a hint by
  themselves ask for it.

A computed hint stays in Python, and then the check names all its mistakes; the first that fits an
answer gives the hint:
`@exercise(mistakes=(Mistake(answer, hint), *read_mistakes("layer_norm", globals())))`.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from attncourse.checking.numbers import as_tensor
from attndoctor.museum import Exhibit

INDENT = "    "
HEADING = re.compile(r"# (?P<name>\w+)(?:\((?P<arguments>.+)\))?")
NAME = re.compile(r"(?P<name>\w+) = ")


@dataclass(frozen=True)
class Mistake:
    """A wrong answer and its hint.

    Several answers may be the same mistake, and share its hint. `answer` has the form that the
    check expects: a function, a tensor, a list of numbers. If `whole`, the hint speaks of all rows
    of numbers, and is not for an answer that shares one. A check that chooses a mistake by itself
    asks for its `name`.
    """

    answer: Any
    hint: str
    whole: bool = False
    name: str = ""

    @cached_property
    def numbers(self) -> torch.Tensor | None:
        """`answer` as numbers, or None where it is something else."""
        return as_tensor(self.answer)

    @cached_property
    def flat(self) -> list[float]:
        """`numbers` in one list, which is empty where the answer is something else."""
        return [] if self.numbers is None else self.numbers.flatten().tolist()


def from_museum(exhibit: Exhibit, answer: Any) -> Mistake:
    """Return the mistake that an exhibit of the museum is, with its hint."""
    return Mistake(answer, exhibit.hint)


@dataclass(frozen=True)
class Whole:
    """Numbers in rows that are a mistake only where all rows are theirs."""

    answer: Any


COMMON = {"F": F, "math": math, "nn": nn, "partial": partial, "torch": torch, "whole": Whole}


# What functions take, or None; and wrong answers, code by the number of its line, with their hint.
_Section = tuple[str | None, list[tuple[dict[int, str], str]]]


def read_mistakes(section: str, module: Mapping[str, Any]) -> tuple[Mistake, ...]:
    """Return the mistakes in a section of the text beside a module.

    Args:
        module: `globals()` of the module: its file, and the names that answers are made of.

    Raises:
        ValueError: the text isn't in the form above, or has no such section, or an empty one.
    """
    path = Path(module["__file__"]).with_suffix(".md")
    sections = _sections(path)
    if section not in sections:
        raise ValueError(
            f"{path}: wanted a section '# {section}', got {', '.join(sections) or 'none'}"
        )
    (arguments, texts), names = sections[section], COMMON | dict(module)
    if not texts:
        raise ValueError(f"{path}: wanted a mistake in the section '# {section}', got none")
    mistakes = []
    for codes, hint in texts:
        for line, code in codes.items():
            for name, answer in _evaluate(code, arguments, names, path, line):
                whole = isinstance(answer, Whole)
                mistakes.append(Mistake(answer.answer if whole else answer, hint, whole, name))
    return tuple(mistakes)


def _sections(path: Path) -> dict[str, _Section]:
    sections: dict[str, _Section] = {}
    section = None
    for start, lines in _blocks(_text_of(path)):
        if lines[0].startswith("#"):
            heading = HEADING.fullmatch(lines[0])
            if heading is None or len(lines) > 1:
                wanted = "a heading '# name' or '# name(arguments)', and a blank line below"
                raise _error(path, start, wanted, "\n".join(lines))
            if heading["name"] in sections:
                raise _error(path, start, "one section of each name", f"another {lines[0]!r}")
            section = sections[heading["name"]] = (heading["arguments"], [])
        elif section is None:
            raise _error(path, start, "a heading '# name' first", repr(lines[0]))
        else:
            section[1].append(_codes_and_hint(lines, path, start))
    return sections


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: wanted a text of mistakes in UTF-8, got {error}") from error


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that stand between blank ones, and the number of the first."""
    numbered = enumerate(text.splitlines(), start=1)
    for blank, group in groupby(numbered, lambda line: not line[1].strip()):
        if not blank:
            numbers, lines = zip(*group, strict=True)
            yield numbers[0], list(lines)


def _codes_and_hint(lines: list[str], path: Path, start: int) -> tuple[dict[int, str], str]:
    codes: dict[int, str] = {}
    hint: list[str] = []
    for number, line in enumerate(lines, start=start):
        goes_on = line.startswith(f"{INDENT} ")
        if not line[0].isspace():
            hint.append(line)
        elif hint:
            raise _error(path, number, "a blank line between a hint and the next answer", line)
        elif not line.startswith(INDENT) or (goes_on and not codes):
            raise _error(path, number, "an answer that is indented by four spaces", repr(line))
        elif goes_on:
            codes[max(codes)] += f"\n{line}"
        else:
            codes[number] = line
    if not codes:
        raise _error(path, start, "an answer above its hint, indented by four spaces", lines[0])
    if not hint:
        raise _error(path, start, "a hint right below its answer", lines[-1])
    return codes, " ".join(hint)


def _evaluate(
    code: str, arguments: str | None, names: dict[str, Any], path: Path, line: int
) -> list[tuple[str, Any]]:
    """Return the name, or "", and the function or value of each answer that its code makes."""
    code, above = dedent(code), "\n" * (line - 2)  # as many lines as in the file, for tracebacks
    try:
        if code.startswith("def "):
            made: dict[str, Any] = {}
            exec(compile(f"{above}\n{code}", path, "exec"), names, made)
            return [made.popitem()]
        named = NAME.match(code)
        name, expression = ("", code) if named is None else (named["name"], code[named.end() :])
        several = ast.parse(f"{above}_(\n{expression}\n)", path, "eval").body
        assert isinstance(several, ast.Call)
        found = []
        for answer in map(ast.Expression, several.args):
            if arguments is not None:
                function = ast.parse(f"lambda {arguments}: 0", mode="eval").body
                assert isinstance(function, ast.Lambda)
                function.body, answer.body = answer.body, function
            found.append((name, eval(compile(answer, path, "eval"), names)))
        return found
    except (Exception, SystemExit) as error:
        wanted = "a value" if arguments is None else f"an expression of {arguments}"
        told = f"{code!r}, which raises {type(error).__name__}: {error}"
        raise _error(path, line, wanted, told) from error


def _error(path: Path, line: int, wanted: str, got: str) -> ValueError:
    return ValueError(f"{path}, line {line}: wanted {wanted}, got {got}")
