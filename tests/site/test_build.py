"""The build: what it runs, what it refuses, what it writes."""

import re
import shutil

import pytest
from tools import ROOT
from tools.browsing import open_page
from tools.lesson_runs import NOTEBOOK, all_notebooks
from tools.site_builds import build, copied_packages, run_readers_command, small_project

FIGURE_CELL = """
```{code-cell} ipython3
from IPython.display import SVG
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="6pt"><path fill="#1F2328"/></svg>')
```
"""


def test_the_site_is_built_from_the_lessons_as_they_were_executed(site_build):
    assert "Executing" not in site_build.stdout
    assert site_build.stdout.count("Using cached notebook") == len(all_notebooks())


@pytest.mark.parametrize("page", all_notebooks())
def test_each_page_can_be_downloaded_as_a_notebook_and_as_text(site, page):
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert (site / "_sources" / f"{page}.md").read_text(encoding="utf-8") == source
    html = (site / f"{page}.html").read_text(encoding="utf-8")
    for suffix in (".ipynb", ".md"):
        assert f'href="../_sources/{page}{suffix}"' in html
        assert (site / "_sources" / f"{page}{suffix}").is_file()


def test_a_failing_cell_fails_the_readers_command(tmp_path):
    cell = "# Page\n\n```{code-cell} ipython3\n1 / 0\n```\n"
    project = small_project(tmp_path / "project", {"index": NOTEBOOK + cell})
    result = run_readers_command(project, project)
    assert result.returncode != 0
    assert "ZeroDivisionError" in result.stderr


def test_each_mistake_of_a_page_is_a_warning_that_fails_the_build(tmp_path):
    """One build of many mistakes: with -W every warning is fatal, so each must be one."""
    page = (
        f"{NOTEBOOK}# Page\n\n"
        "{numref}`fig-nowhere`, [no page](L00_Nowhere.md), {cite:p}`nobody1900` and\n"
        "[no heading](#no-such-heading).\n\n"
        "![](square.svg)\n"
        f"{FIGURE_CELL}"
        "\n```{code-cell} ipython3\nimport warnings\nwarnings.warn('look here')\n```\n"
    )
    project = small_project(tmp_path / "project", {"index": page})
    shutil.copy(ROOT / "book/assets/favicon.svg", project / "book" / "square.svg")
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode != 0
    for mistake in (
        "fig-nowhere",
        "L00_Nowhere.md",
        "nobody1900",
        "no-such-heading",
        "image without alt text: square.svg",
        "image without alt text: its cell",
        "computed figure without caption",
        "stderr was found in the cell outputs",
    ):
        assert re.search(rf"index\.md:\d+: .*WARNING: .*{mistake}", result.stderr), mistake


def test_figures_have_a_dark_copy_and_one_caption(tmp_path):
    options = '---\nmystnb: {image: {alt: A dot.}, figure: {name: fig-dot, caption: "Dot."}}\n---\n'
    cell = FIGURE_CELL.replace("from", options + "from", 1)
    page = f"{NOTEBOOK}# Page\n{cell}\nSee {{numref}}`fig-dot`.\n"
    project = small_project(tmp_path / "project", {"index": page})
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    html = (project / "_build/html/book/index.html").read_text(encoding="utf-8")
    assert html.count("<figcaption>") == 1
    assert html.count('id="fig-dot"') == 1
    assert html.count('alt="A dot."') == 2
    assert html.count('class="only-light"') == html.count('class="only-dark"') == 1
    assert len(re.findall(r'<img width="12" height="8" [^>]*loading="lazy"', html)) == 2
    files = [*(project / "_build/html/_images").glob("*.svg")]
    assert all(len(file.name) == len("0123456789ab.svg") for file in files)
    drawings = [path.read_text() for path in files]
    assert sorted("#1F2328" in svg for svg in drawings) == [False, True]
    assert sorted("#e6e8eb" in svg for svg in drawings) == [False, True]


FIGURES_ON_A_PHONE = """
```{code-cell} ipython3
---
mystnb: {image: {alt: Three maps of heads.}, figure: {name: fig-maps, caption: Maps.}}
---
import torch
from attnlib import plotting
plotting.use_course_style()
plotting.plot_heads(torch.eye(4).repeat(3, 1, 1))
```

```{code-cell} ipython3
---
mystnb: {image: {alt: A line of a foot or so.}, figure: {name: fig-line, caption: Line.}}
---
from IPython.display import SVG
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="900pt" height="6pt"><path fill="red"/></svg>')
```
"""
SOURCE = re.compile(
    r'<source width="(\d+)" height="(\d+)" media="([^"]+)" srcset="([^"]+)" ?/?>'
    r'<img width="(\d+)" [^>]*class="only-(light|dark)"'
)


@pytest.fixture(scope="module")
def drawn_for_phones(tmp_path_factory):
    """Return the page of a small site with a figure of attnlib and a wide one of somebody else."""
    folder = tmp_path_factory.mktemp("phones")
    project = small_project(
        folder / "project", {"index": f"{NOTEBOOK}# Page\n{FIGURES_ON_A_PHONE}"}
    )
    result = build(project, project, "-W", "--keep-going")
    assert result.returncode == 0, result.stderr
    return project / "_build/html/book/index.html"


def test_a_phone_has_drawings_of_its_own_in_both_themes(drawn_for_phones):
    html = drawn_for_phones.read_text(encoding="utf-8")
    found = SOURCE.findall(html)
    assert [theme for *_, theme in found] == ["light", "dark"]
    for width, height, media, address, page_width, theme in found:
        assert int(width) <= 312 < int(page_width)
        assert media == "(max-width: 36rem)"
        svg = (drawn_for_phones.parent / address).read_text(encoding="utf-8")
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
        assert [round(float(side) * 96 / 72) for side in size.groups()] == [int(width), int(height)]
        assert ("#1f2328" in svg) == (theme == "light")
        assert ("#e6e8eb" in svg) == (theme == "dark")


@pytest.mark.parametrize(("width", "scrolls"), [(360, True), (1280, False)])
def test_what_a_phone_cannot_show_whole_says_so(browser, drawn_for_phones, width, scrolls):
    with open_page(browser, drawn_for_phones.as_uri(), width=width) as (page, _):
        maps, line = page.locator(".drawing").all()
        wider = "box => box.scrollWidth > box.clientWidth"
        assert not maps.evaluate(wider)
        assert line.evaluate(wider) == scrolls
        hints = page.get_by_text("push it sideways")
        assert hints.count() == 1 and hints.is_visible() == scrolls


@pytest.mark.thorough
def test_editing_the_package_executes_a_page_and_editing_its_text_or_browser_code_does_not(
    tmp_path,
):
    source = copied_packages(tmp_path / "imported")
    cell = "from attnlib import causal_mask\ncausal_mask(4).sum()"
    page = f"{NOTEBOOK}# Page\n\nText.\n\n```{{code-cell}} ipython3\n{cell}\n```\n"
    project = small_project(tmp_path / "project", {"index": page})

    def executes() -> bool:
        result = build(project, project, "-W", imports_from=source)
        assert result.returncode == 0, result.stderr
        return "Executing 1 page" in result.stdout

    def shown() -> str:
        return (project / "_build/html/book/index.html").read_text(encoding="utf-8")

    assert executes()
    assert "tensor(10)" in shown()
    text = project / "book" / "index.md"
    text.write_text(page.replace("Text.", "Better text."), encoding="utf-8")
    (source / "attncourse/widgets/flow/widget.js").write_text("draw()", encoding="utf-8")
    (source / "attncourse" / "lessons" / "l04" / "__init__.py").unlink()
    assert not executes()
    assert "Better text." in shown() and "tensor(10)" in shown()
    with (source / "attnlib" / "masks.py").open("a", encoding="utf-8") as masks:
        masks.write("\n\ndef causal_mask(size): return torch.zeros(size)\n")
    assert executes()
    assert "tensor(0.)" in shown()
