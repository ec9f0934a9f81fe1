"""What a notebook asks of its kernel: measured numbers, and captions of figures."""

from functools import partial

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from tools.refusing import refusals

from attncourse.glue import glue
from attnlib import plotting

LESSON = """---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

```{code-cell} ipython3
---
mystnb:
  figure: {name: fig-one, caption: "One (random)."}
---
1 + 1
```

```{code-cell} ipython3
2 + 2
```
"""


@pytest.fixture
def shell():
    """Give a shell, which is gone afterwards: other tests run outside notebooks."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_a_glued_number_is_a_variable_and_a_hidden_output(shell):
    with capture_output() as captured:
        glue("l99_loss", f"{2 / 3:.2f}")
        glue("l99_count", 50)
    assert (shell.user_ns["l99_loss"], shell.user_ns["l99_count"]) == ("0.67", "50")
    output = captured.outputs[0]
    assert output.data == {"application/papermill.record/text/plain": "'0.67'"}
    assert output.metadata["scrapbook"]["name"] == "l99_loss"


def test_outside_a_notebook_nothing_happens():
    glue("l99_loss", "0.67")


REFUSED = {
    TypeError: {partial(glue, "x"): {"value": [0.5, True, None]}},
    ValueError: {partial(glue, value="1"): {"name": ["l99 loss", 7]}},
}

test_what_does_not_fit_is_refused = refusals(REFUSED)


@pytest.fixture
def opened(shell, tmp_path, monkeypatch):
    """Return a function that opens a notebook in the shell, as a Jupyter server would."""

    def open_as(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("JPY_SESSION_NAME", f"book/{name}")
        plotting.use_course_style()
        plotting.use_course_style()  # a reader runs everything twice
        return shell

    return open_as


def shown(shell, code):
    """Return the Markdown that a cell shows."""
    with capture_output() as captured:
        shell.run_cell(code)
    found = [output.data.get("text/markdown") for output in captured.outputs]
    return [text for text in found if text]


def test_captions_follow_their_cells_alone(opened, monkeypatch):
    shell = opened("L99_Lesson.md", LESSON)
    assert shown(shell, "1 + 1") == ["**fig-one.** One (random)."]
    assert shown(shell, "2 + 2") == shown(shell, "3 + 3") == []
    opened("L99_Lesson.md", LESSON.replace("One (", "Two (").replace("1 + 1", "1 + 2"))
    assert shown(shell, "1 + 2") == ["**fig-one.** Two (random)."]  # the file is read again
    for name in ("", "gone.md"):  # no file is open
        monkeypatch.setenv("JPY_SESSION_NAME", name)
        plotting.use_course_style()
        assert shown(shell, "1 + 2") == []
