"""Style sheets of others: which of their rules a page can use."""

import pytest
import tinycss2
from used_rules import use_of, used_rules

PAGE = """<p class="lead text-right">modal</p><p class='quoted'></p><p class=bare></p>
<script>show("in-page", `bs-${kind}`, `${kind}-auto`);</script>
<script type="application/json">{"class": "data"}</script>"""
SCRIPT = 'box.className = "from-script"; const difference = a-b;'


def kept(text):
    """Return what is left of a sheet for that page and script."""
    is_used = use_of([PAGE], [SCRIPT])
    return used_rules(tinycss2.parse_stylesheet(text), is_used)


@pytest.mark.parametrize("name", [
    "lead", "text-right", "quoted", "bare", "in-page", "from-script", "bs-tooltip", "margin-auto",
])  # fmt: skip
def test_a_class_that_a_page_or_script_has_or_may_make_keeps_its_rule(name):
    assert kept(f".{name}{{color:red}}") == f".{name}{{color:red}}"
    assert kept(f".{name}:not(.none)>*{{color:red}}") == f".{name}:not(.none)>*{{color:red}}"


@pytest.mark.parametrize("name", ["modal", "data", "text", "lead-2", "row-cols-2", "xbs-tooltip"])
def test_any_other_leaves_out_its_rule(name):
    for selector in (f".{name}", f".lead .{name}", f".{name} > *", f"p.{name}:hover::before"):
        assert kept(f"{selector}{{color:red}}") == ""


@pytest.mark.parametrize(("sheet", "left"), [
    (".none,.lead , .none .lead{a:b}", ".lead{a:b}"),
    (":is(.none,.other) p{a:b}p:where(.none){a:b}", ":is(.none,.other) p{a:b}p:where(.none){a:b}"),
    ('[class^="none"],#none,none{a:b}', '[class^="none"],#none,none{a:b}'),
    ("@media print{.none{a:b}.lead{a:b}}", "@media print{.lead{a:b}}"),
    ("@media print{@supports (a:b){.none{a:b}}}p{a:b}", "p{a:b}"),
    ('@import "x.css";@font-face{a:b}@keyframes none{0%{a:b}}',
     '@import "x.css";@font-face{a:b}@keyframes none{0%{a:b}}'),
    ("/*! license */ /* remark */ p { a : url(.none) }", "/*! license */p{ a : url(.none) }"),
    ('.lead{a:".none,{"}.n\\6fne{a:b}', '.lead{a:".none,{"}'),
])  # fmt: skip
def test_selectors_are_told_apart_where_css_does(sheet, left):
    assert kept(sheet) == left
