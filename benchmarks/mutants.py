"""Attnlib's own attention with one small mistake (small_mistakes.py).

A mutation changes one place of functional.py, masks.py or attention.py. What only checks arguments
stays as it is, for a mistake there changes no number.
"""

import ast
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
from small_mistakes import RULES, Mutation, mutations_of

import attnlib
from attndoctor.examine import examine
from attndoctor.match import Answers
from attndoctor.options import DiagnoseOptions
from attndoctor.support.torch_settings import usual_settings

FOLDER = Path(attnlib.__file__).parent
FILES = ("masks", "functional", "attention")  # each imports from those before it

CHECKS = ("require", "_require", "check")
ELSEWHERE = {  # what a module's forward doesn't come by, and what only torch.func does
    "scaled_dot_product_attention", "split_heads", "merge_heads", "causal_mask", "padding_mask",
    "contributions", "extra_repr", "reset_parameters", "vmap",
}  # fmt: skip


def mutations() -> list[Mutation]:
    """Return all mutations of all files, in the order of the code."""
    return [
        mutation
        for file in FILES
        for mutation in mutations_of(FOLDER / f"{file}.py", RULES, _changes_no_number)
    ]


def build(mutation: Mutation) -> type[attnlib.MultiHeadAttention]:
    """Return the class MultiHeadAttention of the mutated files.

    Raises:
        Exception: whatever importing them raises.
    """
    modules: dict[str, ModuleType] = {}
    mutated = mutation.path.stem
    right = {f"attnlib.{file}": sys.modules[f"attnlib.{file}"] for file in FILES}
    try:
        for file in FILES[FILES.index(mutated) :]:
            name, path = f"attnlib.{file}", FOLDER / f"{file}.py"
            spec = importlib.util.spec_from_file_location(name, path)
            modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
            source = mutation.source if file == mutated else path.read_text(encoding="utf-8")
            exec(compile(source, f"<mutated {path.name}>", "exec"), modules[name].__dict__)
    finally:
        sys.modules.update(right)
    return modules["attnlib.attention"].MultiHeadAttention


def seen(candidate: type[attnlib.MultiHeadAttention]) -> str:
    """Return what a diagnosis would see in a mutant, without searching for a name for it.

    "wrong": it fails a probe, at an edge or elsewhere, or raises wherever it is called. "another":
    it fails none, but is taken for something else than attnlib's attention, or a question that
    attnlib's is asked can't be asked; a diagnosis tells both.
    """
    try:
        failed, told = _asked(candidate)
    except Exception:
        return "wrong"
    return "wrong" if failed else "" if told == _of_attnlib() else "another"


@cache
def _of_attnlib() -> tuple[tuple[str, ...], ...]:
    return _asked(attnlib.MultiHeadAttention)[1]


def _asked(candidate: type[attnlib.MultiHeadAttention]) -> tuple[bool, tuple[tuple[str, ...], ...]]:
    """Return whether a probe failed; what wasn't asked, and what it was taken for."""
    with usual_settings(), torch.random.fork_rng(devices=[]):
        answers = Answers.of(examine(candidate, DiagnoseOptions()))
        return bool(answers.failed), (
            tuple(probe.name for probe in answers.not_run),
            answers.tested.taken,
        )


def _changes_no_number(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what only checks, and what a diagnosis doesn't come by."""
    if isinstance(node, ast.Expr) and _is_check(node.value):
        yield from ast.walk(node)
    elif isinstance(node, ast.If) and all(isinstance(inner, ast.Raise) for inner in node.body):
        yield from (node, *ast.walk(node.test))
    elif isinstance(node, ast.FunctionDef):
        if node.name.startswith(CHECKS) or node.name in ELSEWHERE:
            yield from ast.walk(node)
        for decorator in node.decorator_list:
            yield from ast.walk(decorator)


def _is_check(place: ast.AST) -> bool:
    name = ast.unparse(place.func).split(".")[-1] if isinstance(place, ast.Call) else ""
    return name.startswith(CHECKS)
