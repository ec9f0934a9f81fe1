"""The page of sources names all that the site serves of others, with their licenses."""

import re
from email import message_from_string
from importlib.metadata import distribution
from types import SimpleNamespace

import pytest
import yaml
from course import reference
from course.reference import license_of
from fontTools.ttLib import TTFont
from tools import ROOT
from tools.site_builds import read

from attncourse import data

MADE = {  # by the build or by Sphinx from the course's own texts
    "asked.js", "card.png", "documentation_options.js", "language_data.js", "start-page.webp",
    "touch-icon.png",
}  # fmt: skip
OWN = ("widgets/", "fonts/", "vendor/fontawesome/")  # the last two are told of in words
ICONS = ("fa-brands-400", "fa-regular-400", "fa-solid-900")


def sources(site):
    return read(site / "book/sources.html").article


def files_of(package):
    """Return the names of the files that a package brings, templates under what they become."""
    files = distribution(package).files
    return {file.name.removesuffix(".jinja").removesuffix("_t") for file in files}


def test_each_file_of_others_is_from_a_package_that_is_named_with_its_license(site):
    rows = sources(site).select("#what-the-site-serves tr")[1:]
    cells = [[cell.text.strip() for cell in row.select("td")] for row in rows]
    told = {
        name: license
        for _, names, licenses in cells
        for name, license in zip(names.split(", "), licenses.split("; "), strict=True)
    }
    assert told == {name: license_of(name) for name in told}
    own = {file.name for file in (ROOT / "book/assets").iterdir()}
    served = [file for file in (site / "_static").rglob("*") if file.is_file()]
    foreign = [
        file for file in served
        if file.name not in own | MADE
        and not file.relative_to(site / "_static").as_posix().startswith(OWN)
    ]  # fmt: skip
    brought = set().union(*map(files_of, told)) | {"pygments.css"}  # Pygments writes it
    assert len(foreign) > 20
    names = {re.sub(r"\.[0-9a-f]{64}\.", ".", file.name) for file in foreign}  # mystnb.HASH.css
    assert sorted(names - brought) == []


def test_fonts_come_with_their_licenses_and_those_of_icons_are_small(site):
    kinds = (".woff2", ".woff", ".ttf")
    fonts = [file for file in site.rglob("*") if file.suffix in kinds]
    assert {file.stem for file in fonts} == {"course-math", "course-math-more", *ICONS}
    icons = [file for file in fonts if file.stem in ICONS and file.suffix == ".woff2"]
    assert len(icons) == len(ICONS) and sum(file.stat().st_size for file in icons) < 10_000
    for file in icons:  # whose license reserves the name for what wasn't changed
        names = {str(one) for one in TTFont(file)["name"].names if one.nameID in {1, 4, 6}}
        assert not any("awesome" in name.lower() for name in names)
    files = {*(ROOT / "book/assets").rglob("*LICENSE*.txt")}
    downloads = sources(site).select("a.download")
    links = [(site / "book" / link["href"]).resolve() for link in downloads]
    texts = {link.read_text(encoding="utf-8") for link in links}
    assert {file.read_text(encoding="utf-8") for file in files} <= texts and len(files) == 3
    served = (site / "_static/scripts/bootstrap.js.LICENSE.txt").read_text(encoding="utf-8")
    assert "Bootstrap v5" in served and "MIT" in served
    assert "MIT" in (site / "_static/clipboard.min.js").read_text(encoding="utf-8")[:200]
    words = " ".join(sources(site).text.split())
    assert "Bitstream Vera Fonts Copyright" in words  # of what draws figures, in part


def test_each_required_package_is_there_with_its_license_and_all_that_is_kept(site):
    rows = sources(site).select("#packages tr")[1:]
    shown = {row.td.text.strip(): row.select("td")[2].text.strip() for row in rows}
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert len(shown) == len([line for line in lines if line[0].isalpha()])
    assert shown == {name: license_of(name) for name in shown}
    assert "not told" not in shown.values()
    assert all(row.select("td")[1].text.strip() for row in rows)
    listed = {row.td.text.strip() for row in sources(site).select("#data-and-weights tr")[1:]}
    cards = {file.relative_to(data.FOLDER).as_posix() for file in data.FOLDER.rglob("*.json")}
    assert listed == cards and len(cards) > 4


def test_the_course_says_how_to_cite_it(site):
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    entry = sources(site).select_one(".highlight-bibtex").text
    for said in (settings["title"], settings["author"], settings["copyright"]):
        assert f"{{{said}}}" in entry
    assert "url" not in entry and "licensed" not in sources(site).select_one("p").text


LICENSES = {
    "License-Expression: MIT\nClassifier: License :: OSI Approved :: BSD License": "MIT",
    "Classifier: License :: OSI Approved :: BSD License\nLicense: long text": "BSD License",
    "License: Apache-2.0": "Apache-2.0",
}


@pytest.mark.parametrize("told", LICENSES)
def test_the_newest_form_of_a_license_is_read(monkeypatch, told):
    found = SimpleNamespace(metadata=message_from_string(told), files=None)
    monkeypatch.setattr(reference, "distribution", lambda name: found)
    assert license_of("fine") == LICENSES[told]
