"""Joining the widgets' browser code: what is needed, once, in an order that works, or an error."""

import pytest

from attncourse import widgets
from attncourse.widgets import _browser_code as code
from attnlib import palette

WIDGETS = [getattr(widgets, name) for name in widgets.__all__]
NAMES = [widget.__module__.split(".")[-2] for widget in WIDGETS]


@pytest.mark.parametrize(("widget", "name"), [*zip(WIDGETS, NAMES, strict=True)], ids=NAMES)
def test_a_notebook_gets_a_widgets_own_files_and_a_site_every_file_once(widget, name):
    scripts = code.files_of(code.script_of(name))
    site = code.shared_script() + code.lab_script() + code.own_script(code.script_of(name))
    for path in scripts:
        head = f'attnModules["{path.relative_to(code.FOLDER).as_posix()}"] = '
        assert widget._esm.count(head) == site.count(head) == 1, path.name
    own_class = name.replace("_", "-")
    sheet = widget._css.replace(f".attn-widget.attn-{own_class}", ".attn-widget")
    assert ".attn-widget" in sheet and ".attn-widget.attn-" not in sheet
    text = (code.FOLDER / name / "widget.css").read_text(encoding="utf-8")
    rules = text[text.rindex("@import") :].partition("\n")[2]
    assert rules in sheet
    assert rules.replace(".attn-widget", f".attn-widget.attn-{own_class}") in code.own_sheet(name)
    for color in palette.HEAD_COLORS:
        assert color in sheet and palette.DARK[color] in sheet


def test_what_several_widgets_train_with_is_a_script_of_its_own():
    labs = [name for name in NAMES if code.needs_labs(name)]
    assert labs == ["head_lab", "name_lab"]
    common = code.lab_script()
    for name in ("engine/model.js", "engine/trainer.js", "lab/controls.js"):
        assert f'attnModules["{name}"] = ' in common
    for name in ("engine/sampling.js", "head_lab/tasks.js", "shared/dom.js"):
        assert f'attnModules["{name}"] = ' not in common


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "a.js"


def test_what_is_needed_comes_first_and_once(tmp_path):
    entry = write(
        tmp_path,
        a='import { b } from "./b.js";\nimport {\n  c,\n} from "./c.js";\nexport default { b };\n',
        b='import { c } from "./c.js";\nexport const b = c;\n',
        c="export function c() {}\n",
    )
    assert [path.name for path in code.files_of(entry)] == ["c.js", "b.js", "a.js"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": 'import { b } from "./b.js";\n'}, r"b\.js, but there is no file .*b\.js"),
        (
            {"a": 'import { b, d } from "./b.js";\n', "b": "export const b = 1;\nconst d = 2;\n"},
            r"a\.js imports d from b\.js, which exports only b$",
        ),
        (
            {
                "a": 'import { b } from "./b.js";\nexport const a = 1;\n',
                "b": 'import { c } from "./c.js";\nexport const b = 1;\n',
                "c": 'import { b } from "./b.js";\nexport const c = 1;\n',
            },
            r"in a circle: b\.js -> c\.js -> b\.js$",
        ),
        ({"a": 'import b from "./b.js";\n'}, r"a\.js: 'import b from .* must be written as"),
        ({"a": 'import { b } from "https://b"\n'}, r"a\.js: 'import .* must be written as"),
        ({"a": "export { b };\n"}, r"a\.js: 'export \{ b \};' must be written as"),
    ],
)
def test_what_can_not_be_joined_is_refused_in_words(tmp_path, files, message):
    with pytest.raises(ImportError, match=message):
        code.files_of(write(tmp_path, **files))


def test_a_sheet_that_is_not_there_is_told(tmp_path):
    (tmp_path / "a.css").write_text('@import "./b.css";\n', encoding="utf-8")
    with pytest.raises(ImportError, match=r"b\.css, but there is no file"):
        code.files_of(tmp_path / "a.css")
