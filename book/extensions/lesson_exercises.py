"""The API page shows the exercises of every lesson that has some, each lesson under a heading."""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

LESSON = """\
### Of lesson {number}

```{{eval-rst}}
.. automodule:: {module}
   :members:
```
"""


class LessonExercises(SphinxDirective):
    """`{lesson-exercises}`, in a MyST page: what autodoc says of attnlib.exercises.l03, l04 ..."""

    def run(self):
        """Read the headings and docstrings as if the page had them."""
        from attnlib.exercises import lessons  # loads torch, which only this page's reading needs

        self.env.note_reread()  # a new lesson changes the page, which itself stays the same
        text = "\n".join(
            LESSON.format(number=int(name.removeprefix("l")), module=module.__name__)
            for name, module in lessons().items()
        )
        section = nodes.section()
        self.state.nested_parse(StringList(text.splitlines()), 0, section, match_titles=True)
        return section.children


def setup(app):
    """Offer the directive to the pages."""
    app.add_directive("lesson-exercises", LessonExercises)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
