"""A page's tree is read once for all references to its numbers.

Sphinx reads the whole tree of a page again for each number that another place names: here some 250
times. While references are resolved, other pages' trees are only looked at, so one copy serves all.
"""

from functools import cache

from sphinx.transforms.post_transforms import ReferencesResolver, SphinxPostTransform

READERS = {}  # application -> how it reads a tree, once per page


class KeepTrees(SphinxPostTransform):
    """Keep what is read from here on."""

    default_priority = ReferencesResolver.default_priority - 1

    def run(self, **_):
        """Put a reader that keeps trees before the environment's own."""
        if self.app not in READERS:
            READERS[self.app] = cache(self.env.get_doctree)
        self.env.get_doctree = READERS[self.app]


class ReadAfresh(SphinxPostTransform):
    """Read trees afresh again: whoever asks for one from here on may change it."""

    default_priority = ReferencesResolver.default_priority + 1

    def run(self, **_):
        """Give the environment its own reader back."""
        del self.env.get_doctree


def forget(app, _):
    """After a build, also one that broke off in between, no tree is kept."""
    READERS.pop(app, None)
    vars(app.env).pop("get_doctree", None)


def setup(app):
    """Run before and after references are resolved."""
    app.connect("build-finished", forget)
    app.add_post_transform(KeepTrees)
    app.add_post_transform(ReadAfresh)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
