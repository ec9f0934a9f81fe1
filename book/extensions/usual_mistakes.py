"""`{usual-mistakes}`: what goes wrong with which exercise, as the exercises' own checks know it.

Of each hint the first sentence is shown: it says what happened; the rest, which the check says to
whoever it happens to, helps on. The directive's content is for those who read the page's source.
"""

import re
from pathlib import Path

from docutils import nodes
from lesson_numbers import LESSON
from sphinx.util.docutils import SphinxDirective
from without_script import inline

EXERCISE = re.compile(
    r"^`+\{exercise-start\} (.+)\n:label: (\S+)\n((?:.*\n)*?)`+\{exercise-end\}", re.M
)
CHECK = re.compile(r"\bcheck\.(\w+)\(")
SENTENCE = re.compile(r"(?:[^.?!]* right\. )?.{20,}?[.?!](?=\s|$)|.+", re.S)
# "Not all." says nothing alone, nor does "The queries are right."
FOLD = '<details class="course-class"><summary>{title}</summary>'


def exercises_in(text: str) -> list[tuple[str, str, str]]:
    """Return the title and label of each exercise of a lesson, and what checks it."""
    return [(title, label, CHECK.search(body)[1]) for title, label, body in EXERCISE.findall(text)]


def first_sentence(hint: str) -> str:
    """Return what a hint says first."""
    return SENTENCE.match(hint)[0]


def fold(title: str, inside: list[nodes.Node]) -> list[nodes.Node]:
    """Put nodes into a fold."""
    begin = nodes.raw(text=FOLD.format(title=inline(title)), format="html")
    return [begin, *inside, nodes.raw(text="</details>", format="html")]


class UsualMistakes(SphinxDirective):
    """Asks the checks of every lesson."""

    has_content = True

    def run(self):
        """Put each lesson into a fold, and in it each exercise with a list."""
        from attnlib.exercises import lessons  # loads torch, which only this page's reading needs

        self.env.note_reread()  # an edited check changes this page, which itself stays the same
        modules, written = lessons(), []
        for page in sorted(self.env.found_docs):
            lesson = LESSON.match(page.split("/")[-1])
            if not lesson or lesson[0].lower() not in modules:
                continue
            module = modules[lesson[0].lower()]
            text = Path(self.env.doc2path(page)).read_text(encoding="utf-8")
            exercises = []
            for title, label, check in exercises_in(text):
                exercises += self.exercise(title, label, getattr(module, check).mistakes)
            written += fold(re.search(r"^# (.+)$", text, re.M)[1], exercises)
        return written

    def exercise(self, title: str, label: str, mistakes) -> list[nodes.Node]:
        """Return the fold of an exercise: where it stands, and what goes wrong with it."""
        place, messages = self.state.inline_text(f"{{ref}}`{label}`:", self.lineno)
        sentences = dict.fromkeys(first_sentence(mistake.hint) for mistake in mistakes)
        items = [
            nodes.list_item("", nodes.paragraph("", "", nodes.raw(text=inline(one), format="html")))
            for one in sentences
        ]
        told = [nodes.paragraph("", "", *place), nodes.bullet_list("", *items), *messages]
        return fold(title, told)


def setup(app):
    """Offer the directive to the pages."""
    app.add_directive("usual-mistakes", UsualMistakes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
