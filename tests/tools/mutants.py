"""Attnlib's own attention with one small mistake: mutants, made from its syntax trees.

A mutation changes one place of functional.py, masks.py or attention.py: an operator, a constant, a
call that is left out, a name that a neighbor takes, a condition, an assignment that isn't made.
What only checks arguments stays as it is, for a mistake there changes no number.
"""

import ast
import copy
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import torch

import attnlib
from attndoctor.examine import examine
from attndoctor.match import Answers
from attndoctor.options import DiagnoseOptions
from attndoctor.torch_settings import usual_settings

FOLDER = Path(attnlib.__file__).parent
FILES = ("masks", "functional", "attention")  # each imports from those before it

OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.FloorDiv: (ast.Mult,),
    ast.Div: (ast.Mult, ast.FloorDiv), ast.MatMult: (ast.Mult,), ast.And: (ast.Or,),
    ast.Or: (ast.And,), ast.BitAnd: (ast.BitOr, ast.BitXor), ast.BitOr: (ast.BitAnd, ast.BitXor),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Lt: (ast.LtE,), ast.Gt: (ast.GtE,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
NEIGHBORS = (
    {"q", "k", "v"}, {"query", "key", "value"}, {"W_q", "W_k", "W_v", "W_o"}, {"T_q", "T_k"},
    {"num_heads", "num_kv_heads"}, {"mask", "key_mask"}, {"allowed", "fully_masked"},
)  # fmt: skip
CHECKS = ("require", "_require", "check")
ELSEWHERE = {  # what a module's forward doesn't come by, and what only torch.func does
    "scaled_dot_product_attention", "split_heads", "merge_heads", "causal_mask", "padding_mask",
    "contributions", "extra_repr", "reset_parameters", "vmap",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Mutation:
    """One change: in which file, at which place of its syntax tree, and what stands there now."""

    file: str
    number: int
    place: ast.AST
    other: ast.AST

    def __str__(self) -> str:
        return f"{self.file}.py:{self.place.lineno}: {self.change}"

    @property
    def change(self) -> str:
        """What becomes of what."""
        conditional = isinstance(self.place, ast.If)
        nodes = (node.test if conditional else node for node in (self.place, self.other))
        before, after = (" ".join(ast.unparse(node).split()) for node in nodes)
        return f"{before} -> {after}"

    @property
    def source(self) -> str:
        """The mutated file."""
        tree = _tree(self.file)
        wanted, other = _places(tree)[self.number], self.other

        class Replace(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                if node is wanted:
                    return ast.copy_location(other, node)
                return self.generic_visit(node)

        return ast.unparse(ast.fix_missing_locations(Replace().visit(tree)))


def mutations() -> list[Mutation]:
    """Return all mutations of all files, in the order of the code."""
    found = []
    for file in FILES:
        tree = _tree(file)
        skipped = _skipped(tree)
        found += [
            Mutation(file, number, place, other)
            for number, place in enumerate(_places(tree))
            if place not in skipped
            for other in _others(place)
        ]
    return found


def build(mutation: Mutation) -> type[attnlib.MultiHeadAttention]:
    """Return the class MultiHeadAttention of the mutated files.

    Raises:
        Exception: whatever importing them raises.
    """
    modules: dict[str, ModuleType] = {}
    right = {f"attnlib.{file}": sys.modules[f"attnlib.{file}"] for file in FILES}
    try:
        for file in FILES[FILES.index(mutation.file) :]:
            name, path = f"attnlib.{file}", FOLDER / f"{file}.py"
            spec = importlib.util.spec_from_file_location(name, path)
            modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
            source = mutation.source if file == mutation.file else path.read_text(encoding="utf-8")
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


def _others(place: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in a place instead."""
    for rule in (_operators, _constants, _dropped_calls, _neighbors, _conditions, _unmade):
        yield from rule(place)


def _operators(place: ast.AST) -> Iterator[ast.AST]:
    if isinstance(place, ast.BinOp | ast.BoolOp):
        for kind in OPERATORS.get(type(place.op), ()):
            yield _changed(place, op=kind())
    elif isinstance(place, ast.Compare) and len(place.ops) == 1:
        for kind in OPERATORS.get(type(place.ops[0]), ()):
            yield _changed(place, ops=[kind()])
    elif isinstance(place, ast.UnaryOp):
        yield place.operand


def _constants(place: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(place, ast.Constant):
        return
    if isinstance(place.value, bool):
        yield ast.Constant(not place.value)
    elif isinstance(place.value, int | float):
        yield ast.Constant(place.value + 1)
        yield ast.Constant(place.value - 1)


def _dropped_calls(place: ast.AST) -> Iterator[ast.AST]:
    """x.transpose(1, 2) -> x, self.W_q(x) -> x, split(x, h) -> x; f(a, b=c) -> f(a)."""
    if not isinstance(place, ast.Call):
        return
    if isinstance(place.func, ast.Attribute) and not _names_a_module(place.func.value):
        is_layer = isinstance(place.func.value, ast.Name) and place.func.value.id == "self"
        yield place.args[0] if is_layer and place.args else place.func.value
    elif place.args:
        yield place.args[0]
    for keyword in place.keywords:
        yield _changed(place, keywords=[other for other in place.keywords if other is not keyword])


def _neighbors(place: ast.AST) -> Iterator[ast.AST]:
    if isinstance(place, ast.Name) and isinstance(place.ctx, ast.Load):
        for others in _others_of(place.id):
            yield ast.Name(others, ast.Load())
    elif isinstance(place, ast.Attribute) and isinstance(place.ctx, ast.Load):
        for others in _others_of(place.attr):
            yield _changed(place, attr=others)


def _conditions(place: ast.AST) -> Iterator[ast.AST]:
    if isinstance(place, ast.If | ast.IfExp):
        for constant in (True, False):
            yield _changed(place, test=ast.Constant(constant))


def _unmade(place: ast.AST) -> Iterator[ast.AST]:
    """A name that is given a new value keeps its old one."""
    if isinstance(place, ast.Assign) and len(place.targets) == 1:
        target = place.targets[0]
        if isinstance(target, ast.Name) and target.id in ast.unparse(place.value):
            yield ast.Expr(place.value)


def _others_of(name: str) -> list[str]:
    return sorted(other for group in NEIGHBORS if name in group for other in group - {name})


def _changed(place: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(place)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _names_a_module(place: ast.AST) -> bool:
    return isinstance(place, ast.Name) and place.id in (
        "torch",
        "F",
        "math",
        "nn",
        "copy",
        "checks",
    )


def _tree(file: str) -> ast.Module:
    return ast.parse((FOLDER / f"{file}.py").read_text(encoding="utf-8"))


def _places(tree: ast.Module) -> list[ast.AST]:
    return [place for place in ast.walk(tree) if hasattr(place, "lineno")]


def _skipped(tree: ast.Module) -> set[ast.AST]:
    """Return what changes no number: imports, annotations, texts, checks and what they raise."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr):
            parts = [node]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts = [node]
        elif isinstance(node, ast.Expr) and _is_check(node.value):
            parts = [node]
        elif isinstance(node, ast.If) and all(isinstance(inner, ast.Raise) for inner in node.body):
            parts = [node.test, *node.body]
            skipped.add(node)
        elif isinstance(node, ast.FunctionDef):
            if node.name.startswith(CHECKS) or node.name in ELSEWHERE:
                parts = [node]
            arguments = [*node.args.args, *node.args.kwonlyargs, node.args.vararg]
            parts += [argument.annotation for argument in arguments if argument]
            parts += [node.returns, *node.decorator_list]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        for part in parts:
            skipped |= set(ast.walk(part)) if part is not None else set()
    return skipped


def _is_check(place: ast.AST) -> bool:
    name = ast.unparse(place.func).split(".")[-1] if isinstance(place, ast.Call) else ""
    return name.startswith(CHECKS)
