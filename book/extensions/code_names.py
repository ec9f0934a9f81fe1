"""What a piece of Python says about other modules: the names it imports, and how it uses them."""

import ast
from functools import cache

BESIDE = "Path(__file__).parent"
# Means by which code finds what its text doesn't name.
NAMES = {"__file__", "__import__", "__path__", "__spec__", "eval", "exec", "globals"}
ATTRIBUTES = {"__file__", "__path__", "__spec__", "parent", "parents"}
ATTRIBUTES |= {"run_cell", "run_cell_magic", "run_line_magic"}  # of IPython
LIBRARIES = {"importlib", "multiprocessing", "pkgutil", "runpy", "subprocess", "sys"}
HARMLESS = {("importlib.metadata", "version"), ("importlib.util", "find_spec")}

Name = tuple[str, ...]  # a module, and the way on: ("torch.nn", "functional", "softmax")


class CodeNames(ast.NodeVisitor):
    """The names of one module, or of one page's cells.

    Attributes:
        imports: what each name that an import binds may stand for, as in
            `{"F": {("torch.nn", "functional")}}`; imports inside functions count.
        used: what is used of them, in full, as in `{("torch.nn", "functional", "softmax")}`.
        only_imports: whether nothing else is done on its first level.
        reads_beside: whether it reads files in its own folder or below.
        searches: whether it may use what it doesn't name.
    """

    def __init__(self, text: str):
        """Read the text."""
        self.imports: dict[str, set[Name]] = {}
        self.reads_beside = self.searches = False
        self._chains: set[Name] = set()
        try:
            tree = ast.parse(text)
        except SyntaxError:  # such as a line for IPython
            tree, self.searches = ast.parse(""), True
        self.only_imports = all(map(_is_import, tree.body))
        self.visit(tree)
        self.used = {
            (*origin, *attributes)
            for name, *attributes in self._chains
            for origin in self.imports.get(name, ())
        }
        named = self.used.union(*self.imports.values()) - HARMLESS
        self.searches |= any(module.split(".")[0] in LIBRARIES for module, *_ in named)

    def visit_Import(self, node: ast.Import):
        """Note `import torch.nn`, which binds torch, and `import torch.nn as nn`."""
        for module in node.names:
            origin = module.name if module.asname else module.name.partition(".")[0]
            self.imports.setdefault(module.asname or origin, set()).add((origin,))

    def visit_ImportFrom(self, node: ast.ImportFrom):
        """Note `from torch import nn`; a star or a relative import names too little."""
        for name in node.names:
            self.searches |= name.name == "*" or node.level > 0
            origin = str(node.module), name.name
            self.imports.setdefault(name.asname or name.name, set()).add(origin)

    def visit_Attribute(self, node: ast.Attribute):
        """Note `a.b.c` as one name."""
        if ast.unparse(node) == BESIDE:
            self.reads_beside = True
            return
        attributes, base = [node.attr], node.value
        while isinstance(base, ast.Attribute) and ast.unparse(base) != BESIDE:
            attributes.insert(0, base.attr)
            base = base.value
        self.searches |= not ATTRIBUTES.isdisjoint(attributes)
        if isinstance(base, ast.Name):
            self._note(base.id, *attributes)
        else:
            self.visit(base)

    def visit_Name(self, node: ast.Name):
        """Note a name that stands alone."""
        self._note(node.id)

    def visit_Constant(self, node: ast.Constant):
        """Notice a path that climbs."""
        self.searches |= isinstance(node.value, str) and ".." in node.value.split("/")

    def _note(self, name: str, *attributes: str):
        self._chains.add((name, *attributes))
        self.searches |= name in NAMES


read_code = cache(CodeNames)  # each module is read once


def _is_import(statement: ast.stmt) -> bool:
    """Tell an import, a docstring or `__all__` from code that does more."""
    if isinstance(statement, ast.Assign):
        return [ast.unparse(target) for target in statement.targets] == ["__all__"]
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Import | ast.ImportFrom)
