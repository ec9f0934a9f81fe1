"""The course's Sphinx extension: what the site has beyond Jupyter Book, by what a reader sees.

`setup` of each module connects it to Sphinx's events. Where two modules listen to the same event,
the module that comes first in this list runs first. What modules share is in pages.py.
"""

import gc
from importlib import import_module

MODULES = (
    "execution",  # pages run when they have to, and failing cells are shown
    "widgets",  # code, ids and saved states of the interactive figures
    "exercises",  # boxes, stars and minutes; the switch between Reading and Coding
    "predictions",  # answers under covers, and what a reader has done
    "museum",  # walls of cards, made of its figures
    "figures",  # captions, dark copies, copies for phones
    "formulas",  # MathML
    "counts",  # numbers: of figures, of what was measured, of minutes
    "teachers",  # pages made of all lessons: myths, questions, usual mistakes
    "reference",  # tables of packages and weights; the API of exercises and widgets
    "notebooks",  # each page as a notebook
    "publishing",  # buttons, what search engines and screen readers are told
)


def setup(app):
    # All pages stay in memory until the end; to look through them again and again for garbage took
    # a third of a build's time.
    gc.set_threshold(50_000)
    for name in MODULES:
        import_module(f"course.{name}").setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
