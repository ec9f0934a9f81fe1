"""A font with only the characters that are used, under a name of its own.

The licenses of the course's fonts ask that a font which was changed has another name.
"""

from pathlib import Path

from fontTools import subset

NAMES = (1, 3, 4, 6, 16)  # family, identifier, full name, PostScript name, typographic family


def cut(source: Path, target: Path, characters: set[str], name: str) -> set[str]:
    """Write the part of a font that draws these characters, as WOFF2; return those it lacks.

    What a browser builds larger signs from, such as brackets and roots, goes with them. The same
    characters give the same file.
    """
    options = subset.Options(flavor="woff2", layout_features=[], notdef_outline=True)
    font = subset.load_font(source, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(characters))
    lacking = {character for character in characters if ord(character) not in font.getBestCmap()}
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in NAMES:
            font["name"].setName(
                name, record.nameID, record.platformID, record.platEncID, record.langID
            )
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, target, options)
    return lacking
