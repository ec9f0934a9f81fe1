"""The theme's icons: the site's fonts are small, and their license lies beside them."""

from fontTools.ttLib import TTFont
from icons import FONTS


def test_fonts_are_small_and_their_license_lies_beside_them(site):
    folder = site / "_static" / FONTS
    assert {path.suffix for path in folder.iterdir()} == {".woff2"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 10_000
    license_text = (folder.parent / "LICENSE.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE" in license_text
    for path in folder.iterdir():  # which reserves its name for what wasn't changed
        names = {str(record) for record in TTFont(path)["name"].names if record.nameID in {1, 4, 6}}
        assert not any("awesome" in name.lower() for name in names)


def test_no_source_map_is_published_or_named(site):
    assert not list(site.rglob("*.map"))
    for path in (site / "_static").rglob("*.*s"):
        if path.suffix in {".js", ".css"}:
            assert "sourceMappingURL" not in path.read_text(encoding="utf-8"), path.name
