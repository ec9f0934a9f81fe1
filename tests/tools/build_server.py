"""A process that has imported what builds need, and forks for each build.

To import Sphinx, its extensions and torch takes several times as long as to build a small site.
attnlib isn't among it: a build imports the one that it is told to.
"""

import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path

import yaml

from tools import ROOT

STREAMS = ("stdin", "stdout", "stderr")


class BuildServer:
    """Such a process, which waits for builds to be asked for until this one ends."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT / "tests", text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        atexit.register(self.process.communicate)  # it ends when there is nothing more to read

    def run(
        self, arguments: list[str], environment: dict[str, str], imports_from: list[str]
    ) -> subprocess.CompletedProcess:
        """Run `jupyter-book` with some arguments; `imports_from` comes first on Python's path."""
        with tempfile.TemporaryDirectory() as folder:
            files = [os.devnull, *(str(Path(folder) / name) for name in STREAMS[1:])]
            asked = [arguments, environment, imports_from, files]
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            status = int(self.process.stdout.readline())
            out, err = (Path(file).read_text(encoding="utf-8") for file in files[1:])
        return subprocess.CompletedProcess(arguments, status, out, err)


@cache
def build_server() -> BuildServer:
    """Return this process's one."""
    return BuildServer()


def import_all():
    """Import what every build imports, and what those with widgets do."""
    from sphinx.application import builtin_extensions

    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    sys.path[0] = str(ROOT / "book" / "extensions")  # not the folder of the tests
    extensions = config["sphinx"]["config"]["extensions"]
    for module in ("jupyter_book.sphinx", *builtin_extensions, *extensions, "torch", "anywidget"):
        import_module(module)


def serve():
    """Fork for each line that is read, and write down how the build ended."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become_build(*json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become_build(arguments, environment, imports_from, files):
    """Build, and end with the build's status."""
    from jupyter_book.cli.main import main

    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = imports_from
    main(arguments, prog_name="jupyter-book")  # it never returns


if __name__ == "__main__":
    import_all()
    gc.freeze()  # no build looks for garbage in it
    serve()
