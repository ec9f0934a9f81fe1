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
    r"^`+\{exercise-start\}[^\n]*\n:label: (\S+)\n(.*?)^`+\{exercise-end\}", re.M | re.S
)
CHECK = re.compile(r"\bcheck\.(\w+)\(")
SENTENCE = re.compile(r".+?[.?!:](?=\s|$)", re.S)


def exercises_in(text: str) -> dict[str, str]:
    """Return the labels of a lesson's exercises, and what checks each."""
    found = {label: CHECK.search(body) for label, body in EXERCISE.findall(text)}
    return {label: check[1] for label, check in found.items() if check}


def first_sentence(hint: str) -> str:
    """Return what a hint says first."""
    return SENTENCE.match(hint)[0].rstrip(":")


class UsualMistakes(SphinxDirective):
    """Asks the checks of every lesson."""

    has_content = True

    def run(self):
        """Put each lesson's exercises into a fold, with a list below each."""
        from attnlib.exercises import lessons  # loads torch, which only this page's reading needs

        self.env.note_reread()  # an edited check changes this page, which itself stays the same
        modules, written = lessons(), []
        for page in sorted(self.env.found_docs):
            lesson = LESSON.match(page.split("/")[-1])
            if not lesson or lesson[0].lower() not in modules:
                continue
            text = Path(self.env.doc2path(page)).read_text(encoding="utf-8")
            title = re.search(r"^# (.+)$", text, re.M)[1]
            exercises = [
                self.exercise(label, getattr(modules[lesson[0].lower()], check).mistakes)
                for label, check in exercises_in(text).items()
            ]
            begin = f'<details class="course-class"><summary>{inline(title)}</summary>'
            written += [
                nodes.raw(text=begin, format="html"),
                nodes.definition_list("", *exercises),
                nodes.raw(text="</details>", format="html"),
            ]
        return written

    def exercise(self, label: str, mistakes) -> nodes.definition_list_item:
        """Return an exercise, linked, and what goes wrong with it."""
        name, messages = self.state.inline_text(f"{{ref}}`{label}`", self.lineno)
        sentences = dict.fromkeys(first_sentence(mistake.hint) for mistake in mistakes)
        items = [
            nodes.list_item("", nodes.paragraph("", "", nodes.raw(text=inline(one), format="html")))
            for one in sentences
        ]
        told = nodes.definition("", nodes.bullet_list("", *items))
        return nodes.definition_list_item("", nodes.term("", "", *name), told, *messages)


def setup(app):
    """Offer the directive to the pages."""
    app.add_directive("usual-mistakes", UsualMistakes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
