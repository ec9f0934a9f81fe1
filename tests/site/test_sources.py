"""The page of sources names all that the site serves of others, with their licenses."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from course.reference import REQUIRED, license_of
from tools import ROOT
from tools.site_builds import read

from attncourse import data

PAGE = "book/sources.html"
MADE = {  # by the build or by Sphinx from the course's own texts
    "asked.js", "card.png", "documentation_options.js", "language_data.js", "start-page.webp",
    "touch-icon.png",
}  # fmt: skip
OWN = ("widgets/", "fonts/", "vendor/fontawesome/")  # the last two are told of in words
FONTS = {
    "course-math", "course-math-more", "fa-brands-400", "fa-regular-400", "fa-solid-900",
}  # fmt: skip


def sources(site):
    return read(site / PAGE).article


def told_of(site):
    """Return the packages of the table of what the site serves, and the license of each."""
    rows = sources(site).select("#what-the-site-serves tr")[1:]
    cells = [[cell.text.strip() for cell in row.select("td")] for row in rows]
    return {
        name: license
        for _, names, told in cells
        for name, license in zip(names.split(", "), told.split("; "), strict=True)
    }


def files_of(package):
    """Return the names of the files that a package brings, templates under what they become."""
    return {
        file.name.removesuffix(".jinja").removesuffix("_t") for file in distribution(package).files
    }


def test_each_file_of_others_is_from_a_package_that_is_named(site):
    own = {file.name for file in (ROOT / "book/assets").iterdir()}
    served = [file for file in (site / "_static").rglob("*") if file.is_file()]
    foreign = [
        file for file in served
        if file.name not in own | MADE
        and not file.relative_to(site / "_static").as_posix().startswith(OWN)
    ]  # fmt: skip
    brought = set().union(*map(files_of, told_of(site))) | {"pygments.css"}  # Pygments writes it
    assert len(foreign) > 20
    names = {re.sub(r"\.[0-9a-f]{64}\.", ".", file.name) for file in foreign}  # mystnb.HASH.css
    assert sorted(names - brought) == []
    assert told_of(site) == {name: license_of(name) for name in told_of(site)}


def test_the_course_says_how_to_cite_it(site):
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    entry = sources(site).select_one(".highlight-bibtex").text
    for said in (settings["title"], settings["author"], settings["copyright"]):
        assert f"{{{said}}}" in entry
    assert "url" not in entry and "licensed" not in sources(site).select_one("p").text


def test_fonts_come_with_their_licenses(site):
    fonts = [*site.rglob("*.woff2"), *site.rglob("*.woff"), *site.rglob("*.ttf")]
    assert {font.stem for font in fonts} == FONTS
    files = {*(ROOT / "book/assets").rglob("*LICENSE*.txt")}
    links = [
        (site / "book" / link["href"]).resolve() for link in sources(site).select("a.download")
    ]
    texts = {link.read_text(encoding="utf-8") for link in links}
    assert {file.read_text(encoding="utf-8") for file in files} <= texts and len(files) == 3
    served = (site / "_static/scripts/bootstrap.js.LICENSE.txt").read_text(encoding="utf-8")
    assert "Bootstrap v5" in served and "MIT" in served
    assert "MIT" in (site / "_static/clipboard.min.js").read_text(encoding="utf-8")[:200]
    words = " ".join(sources(site).text.split())
    assert "Bitstream Vera Fonts Copyright" in words  # of what draws figures, in part


def test_each_required_package_is_there_with_its_license(site):
    rows = sources(site).select("#packages tr")[1:]
    shown = {row.td.text.strip(): row.select("td")[2].text.strip() for row in rows}
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    required = [line for line in lines if line[0].isalpha()]
    assert len(shown) == len(required) == len(REQUIRED.findall("\n".join(lines)))
    assert shown == {name: license_of(name) for name in shown}
    assert "not told" not in shown.values()
    assert all(row.select("td")[1].text.strip() for row in rows)


def test_all_that_is_kept_is_listed(site):
    listed = {row.td.text.strip() for row in sources(site).select("#data-and-weights tr")[1:]}
    cards = {file.relative_to(data.FOLDER).as_posix() for file in data.FOLDER.rglob("*.json")}
    assert listed == cards and len(cards) > 4


def test_no_license_is_claimed_for_the_course(site):
    """README tells the owner; readers meet no warning."""
    assert not list(ROOT.glob("LICENSE*"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "license" not in project
    assert "No license has been chosen" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("told", "license"),
    [
        ("License-Expression: MIT\nClassifier: License :: OSI Approved :: BSD License", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License\nLicense: long text", "BSD License"),
        ("License: Apache-2.0", "Apache-2.0"),
        ("Summary: a package", "The license's own title"),
    ],
    ids=["expression", "classifier", "field", "file"],
)
def test_the_newest_form_of_a_license_is_read(tmp_path, monkeypatch, told, license):
    folder = tmp_path / "fine-1.dist-info"
    folder.mkdir()
    head = "Metadata-Version: 2.1\nName: fine\nVersion: 1\n"
    Path(folder, "METADATA").write_text(f"{head}{told}\n", encoding="utf-8")
    Path(folder, "LICENSE").write_text("\nThe license's own title\n\nIts text.\n", encoding="utf-8")
    Path(folder, "RECORD").write_text("fine-1.dist-info/LICENSE,,\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert license_of("fine") == license
