"""`{class-questions}`: all predictions of the lessons, as questions for a class.

They are taken from the boxes that the lessons show, each with its choices, the answer in a fold,
and a link to the section where it stands. The directive's content is for those who read the page's
source.
"""

from string import ascii_uppercase

from docutils import nodes
from lesson_numbers import LESSON
from page_widgets import shown_widgets, state_of
from sphinx.util.docutils import SphinxDirective
from without_script import inline, paragraphs

ASKED = ("question", "choices", "answers", "explanation")


class Questions(nodes.General, nodes.Element):
    """Where the questions stand."""


class ClassQuestions(SphinxDirective):
    """Keeps the place until all lessons are read."""

    has_content = True

    def run(self):
        """Return the place."""
        self.env.metadata[self.env.docname]["asks class"] = True
        return [Questions()]


def remember(app, doctree):
    """Note what a lesson asks, with the section where it asks."""
    page = app.env.docname
    if not LESSON.match(page.split("/")[-1]):
        return
    state, found = state_of(app.env, page), []
    for view, model in shown_widgets(doctree):
        asked = state[model]["state"]
        if asked.get("_module") == "predict":
            section = view
            while not isinstance(section, nodes.section):
                section = section.parent
            title = section.next_node(nodes.title).astext()
            place = {"id": section["ids"][0], "title": title}
            found.append({name: asked[name] for name in ASKED} | place)
    app.env.metadata[page]["questions"] = found


def write_again(app, env):
    """Write the pages that show the questions again where these have changed."""
    asked = {page: data["questions"] for page, data in env.metadata.items() if "questions" in data}
    before, env.questions = getattr(env, "questions", None), asked
    pages = [page for page, data in env.metadata.items() if data.get("asks class")]
    return pages if before != asked else []


def question(asked: dict, address: str) -> str:
    """Return a question of a list as HTML."""
    choices = "".join(f"<li>{inline(choice)}</li>" for choice in asked["choices"])
    letters = ", ".join(ascii_uppercase[i] for i in asked["answers"])
    answer = paragraphs(f"{letters}. {asked['explanation']}")
    place = f'<a href="{address}#{asked["id"]}">{inline(asked["title"])}</a>'
    return (
        f'<li>{paragraphs(asked["question"])}<ol type="A">{choices}</ol>'
        f"<details><summary>Answer</summary>{answer}</details><p>In the lesson: {place}</p></li>"
    )


def show(app, doctree, page):
    """Put each lesson's questions into a fold."""
    if app.builder.format != "html":
        return
    for place in list(doctree.findall(Questions)):
        folds = []
        for lesson, asked in sorted(app.env.questions.items()):
            if asked:
                address = app.builder.get_relative_uri(page, lesson)
                items = "".join(question(one, address) for one in asked)
                title = inline(app.env.titles[lesson].astext())
                number = f"{len(asked)} question{'s' * (len(asked) != 1)}"
                folds.append(
                    f'<details class="course-class"><summary>{title} ({number})</summary>'
                    f"<ol>{items}</ol></details>"
                )
        place.replace_self(nodes.raw(text="".join(folds), format="html"))


def setup(app):
    """Run behind widget_code, which says whose each widget is, and when all lessons are read."""
    app.add_node(Questions)
    app.add_directive("class-questions", ClassQuestions)
    app.connect("doctree-read", remember, priority=700)
    app.connect("env-get-updated", write_again)
    app.connect("doctree-resolved", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
