"""Joining the widgets' browser code: what is needed, once, in an order that works, or an error.

That each widget has all it needs on a page and in a notebook, the tests in browsers ask.
"""

import pytest

from attncourse.widgets import _browser_code as code
from attnlib import palette


def test_heads_have_their_colors_in_the_light_and_in_the_dark():
    light, dark = code.shared_sheet().split("color-scheme: dark")
    for i, color in enumerate(palette.HEAD_COLORS):
        assert f"--attn-head-{i}: {color};" in light
        assert f"--attn-head-{i}: {palette.DARK[color]};" in dark


def files_of(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return [path.name for path in code.files_of(folder / "a.js")]


USES_B = 'import { b } from "./b.js";\n'
USES_C = 'import {\n  c,\n} from "./c.js";\n'


def test_what_is_needed_comes_first_and_once(tmp_path):
    a = f"{USES_B}{USES_C}export default {{ b }};\n"
    b, c = f"{USES_C}export const b = c;\n", "export function c() {}\n"
    assert files_of(tmp_path, a=a, b=b, c=c) == ["c.js", "b.js", "a.js"]


IS_B, IS_C = "export const b = 1;\n", "export const c = 1;\n"
REFUSED = {
    r"b\.js, but there is no file .*b\.js": {"a": USES_B},
    r"a\.js imports b from b\.js, which exports only c$": {"a": USES_B, "b": IS_C},
    r"a circle: b\.js -> c\.js -> b\.js$": {"a": USES_B, "b": USES_C + IS_B, "c": USES_B + IS_C},
    r"a\.js: 'import b from .* must be written as": {"a": 'import b from "./b.js";\n'},
    r"a\.js: 'export \{ b \};' must be written as": {"a": "export { b };\n"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_can_not_be_joined_is_refused_in_words(tmp_path, message):
    with pytest.raises(ImportError, match=message):
        files_of(tmp_path, **REFUSED[message])
