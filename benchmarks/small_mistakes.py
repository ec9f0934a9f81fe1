"""Small mistakes in any module, made from its syntax tree.

A mutation changes one place: an operator, a constant, a call that is left out, a name that a
neighbor takes, a condition, an assignment that isn't made.
"""

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Rule = Callable[[ast.AST], Iterator[ast.AST]]  # what may stand in a place instead

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
MODULES = {
    "torch",
    "F",
    "math",
    "nn",
    "copy",
    "checks",
}  # F.pad(x) -> F is no mistake that anybody makes


@dataclass(frozen=True, eq=False)
class Mutation:
    """One change: in which file, at which place of its syntax tree, and what stands there now."""

    path: Path
    number: int
    place: ast.AST
    other: ast.AST

    def __str__(self) -> str:
        return f"{self.path.name}:{self.place.lineno}: {self.change}"

    @property
    def change(self) -> str:
        """What becomes of what."""
        return " -> ".join(self.texts)

    @property
    def texts(self) -> tuple[str, str]:
        """What stands there, and what the mutation makes of it."""
        conditional = isinstance(self.place, ast.If)
        nodes = (node.test if conditional else node for node in (self.place, self.other))
        before, after = (" ".join(ast.unparse(node).split()) for node in nodes)
        return before, after

    @property
    def tree(self) -> ast.Module:
        """The mutated file's syntax tree; what stands in it keeps its line."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        wanted, other = _places(tree)[self.number], self.other

        class Replace(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                if node is wanted:
                    return ast.copy_location(other, node)
                return self.generic_visit(node)

        return ast.fix_missing_locations(Replace().visit(tree))

    @property
    def source(self) -> str:
        """The mutated file."""
        return ast.unparse(self.tree)


def mutations_of(
    path: Path, rules: Iterable[Rule], kept: Callable[[ast.AST], Iterable[ast.AST]] = lambda _: ()
) -> list[Mutation]:
    """Return all mutations of a file, in the order of the code.

    Args:
        path: the file.
        rules: what may stand in a place instead.
        kept: returns what stays as it is because of a node. Imports, annotations, texts and what
            is raised stay anyway: they change no number.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {part for node in ast.walk(tree) for part in (*_words(node), *kept(node))}
    return [
        Mutation(path, number, place, other)
        for number, place in enumerate(_places(tree))
        if place not in skipped
        for rule in rules
        for other in rule(place)
    ]


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


def swapped_arguments(place: ast.AST) -> Iterator[ast.AST]:
    """f(a, b, c) -> f(b, a, c), f(a, c, b)."""
    if not isinstance(place, ast.Call) or any(isinstance(a, ast.Starred) for a in place.args):
        return
    for i, (first, second) in enumerate(pairwise(place.args)):
        if ast.unparse(first) != ast.unparse(second):
            swapped = [*place.args[:i], second, first, *place.args[i + 2 :]]
            yield _changed(place, args=swapped)


RULES = (_operators, _constants, _dropped_calls, _neighbors, _conditions, _unmade)


def _others_of(name: str) -> list[str]:
    return sorted(other for group in NEIGHBORS if name in group for other in group - {name})


def _changed(place: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(place)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _names_a_module(place: ast.AST) -> bool:
    return isinstance(place, ast.Name) and place.id in MODULES


def _places(tree: ast.Module) -> list[ast.AST]:
    return [place for place in ast.walk(tree) if hasattr(place, "lineno")]


def _words(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what changes no number: imports, annotations, texts, what is raised."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr):
        yield from ast.walk(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield from ast.walk(node)
    elif isinstance(node, ast.FunctionDef) and node.returns:
        yield from ast.walk(node.returns)
    elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
        yield from ast.walk(node.annotation)
