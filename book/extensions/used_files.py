"""Which files of attnlib a page depends on, told from its code without running it.

Names are followed, not modules: a page that says `plotting.plot_heads` depends on the file that
defines `plot_heads`, and on what that file uses in turn, not on all that `attnlib.plotting` offers.

* An import counts wherever it stands, inside a function too.
* An `__init__` that only imports is looked through, to the file where a name comes from.
* A module that is used as a whole (handed on, `vars(plotting)`) stands for all that is in it.
* Exercises that a lesson's `__init__` gathers from the files beside it are all of its folder.
* A module that reads `Path(__file__).parent / ...` depends on whatever lies there and below.
* Code that finds modules or files in another way, or can't be read, depends on the whole package.
* The widgets' .js and .css decide no output: the build publishes them from the package.

So nothing is missed as long as importing a module only defines names, and as long as no page
reaches into the package by a path of its own. Tests hold the package to this, and pages to what
really ran while they were executed.
"""

from pathlib import Path

from code_names import CodeNames, Name, read_code

PACKAGE = "attnlib"
PUBLISHED_APART = {".css", ".js"}
# Finds files while it runs, but only those that are published apart.
JOINS_PUBLISHED = "widgets/_browser_code.py"
# Finds modules while it runs, but only those beside the code that calls it.
GATHERS_BESIDE = ("attnlib.exercises._lesson", "publish")


class UsedFiles:
    """The files of a package that some code depends on, and the re-exports that lead to them."""

    def __init__(self, text: str, package: Path):
        """Follow the names of a text."""
        self.package = package
        self.files: set[Path] = set()
        self.links: set[str] = set()
        self._seen: set[Name] = set()
        self._follow_code(read_code(text), package)

    def _follow_code(self, code: CodeNames, folder: Path):
        if code.searches:
            self.files |= files_below(self.package)
        elif code.reads_beside:
            self.files |= {path for path in files_below(folder) if path.suffix != ".py"}
        for name in code.used - {GATHERS_BESIDE}:
            self._follow(name)
        if GATHERS_BESIDE in code.used:
            self.files.add(self.package / "exercises" / "_lesson.py")
            for inner in folder.rglob("*.py"):
                self._use(inner)

    def _follow(self, name: Name):
        """Go from a name to where it is defined."""
        package, *modules = name[0].split(".")
        if package != PACKAGE or name in self._seen:
            return
        self._seen.add(name)
        file = self.package / "__init__.py"
        for module in modules:
            file = submodule(file, module) or file
        for i, attribute in enumerate(name[1:], start=1):
            code = read_code(file.read_text(encoding="utf-8"))
            origins = {(*origin, *name[i + 1 :]) for origin in code.imports.get(attribute, ())}
            for origin in origins:
                self.links.add(f"{name} is {origin}")
                self._follow(origin)
            inner = submodule(file, attribute)
            if inner is None:
                if not code.only_imports:
                    self._use(file)
                elif not origins:
                    self._use_whole(file)
                return
            file = inner
        self._use_whole(file)

    def _use(self, file: Path):
        """Count a module that defines something, and what it uses."""
        if file not in self.files:
            self.files.add(file)
            code = read_code(file.read_text(encoding="utf-8"))
            if file == self.package / JOINS_PUBLISHED:
                for name in code.used:
                    self._follow(name)
            else:
                self._follow_code(code, file.parent)

    def _use_whole(self, file: Path):
        """Count all that a module or package holds, and all that can be reached through it."""
        for inner in file.parent.rglob("*.py") if file.name == "__init__.py" else [file]:
            self._use(inner)
            for origins in read_code(inner.read_text(encoding="utf-8")).imports.values():
                for origin in origins:
                    self._follow(origin)


def submodule(file: Path, name: str) -> Path | None:
    """Return the file of a package's module, if it is a package and has one of this name."""
    if file.name != "__init__.py":
        return None
    files = file.with_name(name) / "__init__.py", file.with_name(f"{name}.py")
    return next(filter(Path.is_file, files), None)


def files_below(folder: Path) -> set[Path]:
    """Return all files of a folder that can decide what a page shows."""
    return {
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in PUBLISHED_APART and "__pycache__" not in path.parts
    }
