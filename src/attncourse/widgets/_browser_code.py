"""The widgets' browser code and style, joined from files that import each other.

A widget is the folder of its name, and begins with its `widget.js` and `widget.css`. A file names
what it uses as any module does, `import { element } from "../shared/dom.js";` or, in a style sheet,
`@import "../shared/widget.css";`. In a notebook a widget's code is one text without
neighbors, and a published page may be opened from a folder, where browsers refuse modules. So each
file becomes a function that returns what the file exports, after those of the files it imports.

`shared/palette.js` and `shared/palette.css` are no files: they are written from attnlib.palette.
Neither are `engine/concord.js` and `engine/names_data.js`, which hold the words and numbers of
attncourse.tasks.concord and names, and `answer/remarks_said.js`, which holds the words of
attncourse.checking's remarks on numbers. Nor is `engine/worker_code.js`: a worker begins without
the page's modules, and a page opened from a folder can load no file for it. So each module's
function stays with what it returned, as `make`, and that file lists those that `engine/worker.js`
is made of.

What several widgets use stands in the folder `shared`, and every page with widgets loads it. What
several of those that train models use, such as most of the engine, is in a script of its own.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from attncourse.tasks import concord, names
from attnlib import palette

FOLDER = Path(__file__).resolve().parent
SHARED = FOLDER / "shared"
ENGINE = FOLDER / "engine"
NOTEBOOK = FOLDER / "notebook.js"
REMARKS = FOLDER.parent / "checking/number_hints.json"

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:function|const|class) (\w+))", re.MULTILINE)
DEFAULT = re.compile(r"^export default ", re.MULTILINE)
STYLE_IMPORT = re.compile(r'^@import "(\.[^"]+)";\n', re.MULTILINE)
MAKE = "(make) => Object.assign(make({}), { make });"  # a module of its function
UNREAD = re.compile(r"^(?:import|export|@import)\b.*", re.MULTILINE)


def script_of(name: str) -> Path:
    """Return the file with which a widget begins, by the name of its folder."""
    return FOLDER / name / "widget.js"


def browser_code(name: str) -> str:
    """Return a widget's code as the one module that a notebook runs: what it needs, then itself.

    In a notebook a cell may set any value, so there each view tells what `readState` refuses.
    """
    entry = script_of(name)
    parts = [_as_function(path) for path in [*files_of(entry), NOTEBOOK]]
    return "\n".join(
        [
            "const attnModules = {};",
            f"const attnModule = {MAKE}",
            *parts,
            f"export default {_module_of(NOTEBOOK)}.tellingRefusals({_module_of(entry)});",
        ]
    )


def style_sheet(name: str) -> str:
    """Return a widget's style as the one sheet that a notebook applies.

    In the files `.attn-widget` means the widget itself. Here it becomes this widget's own class, so
    that no sheet reaches another widget, and their order on a page means nothing.
    """
    return _styles(files_of(_sheet_of(name)), _class_of(name))


def shared_script() -> str:
    """Return a classic script with the code that widgets share, for a page to load first."""
    return _script(_all_shared(".js"))


def lab_script() -> str:
    """Return a classic script with what more than one widget needs that isn't in `shared`.

    That is the engine and the parts of widgets that train; it needs the code of `shared_script`.
    """
    return _script(_in_labs())


def needs_labs(name: str) -> bool:
    """Return whether a widget's code needs that of `lab_script`."""
    return not {*_in_labs()}.isdisjoint(files_of(script_of(name)))


def own_script(entry: Path) -> str:
    """Return a classic script with the code of a file, such as `script_of` a widget.

    It needs that of `shared_script`, and that of `lab_script` where `needs_labs`.
    """
    common = {*_in_labs()}
    own = (path for path in files_of(entry) if path.parent != SHARED)
    return _script(path for path in own if path not in common)


def shared_sheet() -> str:
    """Return the style that widgets share, for a page to apply first."""
    # Named twice, the class weighs as much as the two that each widget's own sheet names.
    return _styles(_all_shared(".css"), ".attn-widget")


def page_script(name: str) -> str:
    """Return a classic script with all of a widget's code, for a page that has it alone."""
    return _script(files_of(script_of(name)))


def own_sheet(name: str) -> str:
    """Return a widget's own style; it needs that of `shared_sheet`."""
    own = (path for path in files_of(_sheet_of(name)) if path.parent != SHARED)
    return _styles(own, _class_of(name))


def files_of(entry: Path) -> list[Path]:
    """Return a file with all that it imports, each after what it imports itself.

    Raises:
        ImportError: a file or name that isn't there, another form of import or export, or a circle.
    """
    found: list[Path] = []

    def visit(path: Path, way: list[Path]) -> None:
        if path in way:
            circle = " -> ".join(step.name for step in [*way[way.index(path) :], path])
            raise ImportError(f"browser code can't import in a circle: {circle}")
        if path in found:
            return
        for exports, other in _imports(path):
            visit(other, [*way, path])
            _require_exports(path, exports, other)
        found.append(path)

    visit(entry, [])
    return found


@cache
def _in_labs() -> tuple[Path, ...]:
    """Return the files outside `shared` that several widgets need, in an order that works."""
    widgets = sorted(FOLDER.glob("*/widget.js"))
    needed = [path for widget in widgets for path in files_of(widget) if path.parent != SHARED]
    return tuple(path for path, count in Counter(needed).items() if count > 1)


def _all_shared(suffix: str) -> list[Path]:
    """Return the files of the folder `shared` with this suffix, in an order that works."""
    entries = sorted(SHARED.glob(f"*{suffix}"))
    return list(dict.fromkeys(path for entry in entries for path in files_of(entry)))


def _script(paths: Iterable[Path]) -> str:
    functions = (_as_function(path) for path in paths)
    return "\n".join(
        ["globalThis.attnModules ??= {};", f"globalThis.attnModule ??= {MAKE}", *functions]
    )


def _as_function(path: Path) -> str:
    """Return a module as a function that is called at once and returns what the module exports."""
    code = _source(path)
    exported = ", ".join(EXPORT.findall(code))

    def take(match: re.Match[str]) -> str:
        return f"const {{{match[1]}}} = {_module_of((path.parent / match[2]).resolve())};\n"

    code = EXPORT.sub("", IMPORT.sub(take, code))
    code = code.replace("\nexport default ", "\nexports.default = ")
    returned = f"{{ {exported} }}"
    if "\nexports.default = " in code:
        returned = f"Object.assign(exports, {returned})"
    return (
        f"{_module_of(path)} = attnModule((exports) => {{\n"
        f'"use strict";\n{code}return {returned};\n}});'
    )


def _module_of(path: Path) -> str:
    return f"attnModules[{json.dumps(path.relative_to(FOLDER).as_posix())}]"


def _sheet_of(name: str) -> Path:
    return FOLDER / name / "widget.css"


def _class_of(name: str) -> str:
    return f".attn-{name.replace('_', '-')}"


def _styles(paths: Iterable[Path], own_class: str) -> str:
    text = "\n".join(STYLE_IMPORT.sub("", _source(path)) for path in paths)
    return text.replace(".attn-widget", f".attn-widget{own_class}")


def _imports(path: Path) -> list[tuple[list[str], Path]]:
    """Return what a file imports: names (none from a style sheet), and the other file."""
    text = _source(path)
    if path.suffix == ".css":
        imports = [("", other) for other in STYLE_IMPORT.findall(text)]
        rest = STYLE_IMPORT.sub("", text)
    else:
        imports = IMPORT.findall(text)
        rest = DEFAULT.sub("", EXPORT.sub("", IMPORT.sub("", text)))
    if unread := UNREAD.search(rest):
        raise ImportError(
            f'{path.name}: {unread[0]!r} must be written as import {{ a, b }} from "./other.js"; '
            '@import "./other.css"; export function, const or class, or export default'
        )
    return [
        (
            [name.strip() for name in names.split(",") if name.strip()],
            (path.parent / other).resolve(),
        )
        for names, other in imports
    ]


def _require_exports(path: Path, names: Iterable[str], other: Path) -> None:
    exported = EXPORT.findall(_source(other))
    for name in names:
        if name not in exported:
            raise ImportError(
                f"{path.name} imports {name} from {other.name}, which exports only "
                f"{', '.join(exported)}"
            )


def _source(path: Path) -> str:
    """Return the text of a file, or of one that is written from what Python has."""
    if path == SHARED / "palette.js":
        return _palette_module()
    if path == SHARED / "palette.css":
        return _palette_sheet()
    if path == ENGINE / "concord.js":
        return f"export const CONCORD = {json.dumps(concord.data, separators=(',', ':'))};\n"
    if path == ENGINE / "names_data.js":
        return f"export const NAMES = {json.dumps(names.data, separators=(',', ':'))};\n"
    if path == FOLDER / "answer/remarks_said.js":
        return f"export const SAID = {REMARKS.read_text(encoding='utf-8').strip()};\n"
    if path == ENGINE / "worker_code.js":
        return _worker_module()
    if not path.is_file():
        raise ImportError(f"browser code imports {path.name}, but there is no file {path}")
    return path.read_text(encoding="utf-8")


def _palette_module() -> str:
    colors = {
        "weightScale": palette.WEIGHT_SCALE,
        "signedScale": palette.SIGNED_SCALE,
        "headColors": len(palette.HEAD_COLORS),
    }
    return f"export const PALETTE = {json.dumps(colors)};\n"


def _worker_module() -> str:
    """Return a module that lists what a worker is made of, in order: [name, function] of each."""
    files = [path.relative_to(FOLDER).as_posix() for path in files_of(ENGINE / "worker.js")]
    listed = f"{json.dumps(files)}.map((name) => [name, attnModules[name].make])"
    # The import makes those modules stand before this one.
    return f'import {{ run }} from "./worker.js";\nexport const MODULES = {listed};\n'


def _palette_sheet() -> str:
    """Return the palette as CSS variables, light and dark."""
    colors = {"query": palette.QUERY_COLOR, "key": palette.KEY_COLOR}
    colors |= {"ink": palette.INK, "muted": palette.MUTED, "line": palette.LINE}
    colors |= {f"head-{i}": color for i, color in enumerate(palette.HEAD_COLORS)}
    light = "".join(f"--attn-{key}: {color};" for key, color in colors.items())
    dark = "".join(f"--attn-{key}: {palette.DARK[color]};" for key, color in colors.items())
    scale = "".join(
        f"--attn-{name}-scale: linear-gradient(to right, {', '.join(stops)});"
        for name, stops in (("weight", palette.WEIGHT_SCALE), ("signed", palette.SIGNED_SCALE))
    )
    # The course's pages and JupyterLab each say in an attribute which theme is on.
    on_dark = 'html[data-theme="dark"] .attn-widget, [data-jp-theme-light="false"] .attn-widget'
    return (
        f".attn-widget {{color-scheme: light; {light}{scale}}}\n"
        f"{on_dark} {{color-scheme: dark; {dark}}}\n"
    )
