"""What screen readers are told: the theme's and the bibliography's markup, put right.

The theme's left sidebar is no landmark, so its title and search field belong to none. docutils
gives bibliography entries a role that has been withdrawn, in a list that also holds anchors. Sphinx
writes the arguments of a signature, one a line, as definitions of nothing. myst-nb calls each fold
"Toggle hidden content", whatever it says. And the link that skips to the text would lead to the
buttons above it.
"""

from pathlib import Path

REPLACEMENTS = {
    'class="bd-sidebar-primary bd-sidebar': (
        'role="complementary" aria-label="Course" class="bd-sidebar-primary bd-sidebar'
    ),
    ' role="doc-biblioentry"': "",
    ' aria-label="Toggle hidden content"': "",
    'href="#main-content"': 'href="#course-text"',
    '<article class="bd-article">': '<article class="bd-article" id="course-text">',
    '<div class="bd-search-container">': '<div class="bd-search-container" id="course-text">',
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    '<dl>\n<dd><em class="sig-param">': '<dl role="presentation">\n<dd><em class="sig-param">',
}


def mend(app, exception):
    """Replace the markup on every page."""
    if exception is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = mended = page.read_text(encoding="utf-8")
        for theirs, ours in REPLACEMENTS.items():
            if not ours or ours not in text:  # a page may stand from an earlier build
                mended = mended.replace(theirs, ours)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def setup(app):
    """Run when all pages are written."""
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
