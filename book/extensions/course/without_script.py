"""What stands in a widget's place where it isn't drawn: in words what it would show.

A question to commit to is written out, its answer folded; of an exercise that is answered on the
page, what there is to fill in, to choose from or to put in order. Texts come from the widget's
saved state and stay text.
"""

import re
from html import escape

INLINE = re.compile(r"`([^`]+)`|\*(?!\s)([^*]*[^*\s])\*")  # as in the widgets' shared/text.js


def inline(text: str) -> str:
    """Return text as HTML in which `code` and *emphasis* are the only markup."""

    def mark(match: re.Match) -> str:
        tag, inside = ("code", match[1]) if match[1] else ("em", match[2])
        return f"<{tag}>{inside}</{tag}>"

    return INLINE.sub(mark, escape(text, quote=False))


def paragraphs(text: str) -> str:
    """Return a <p> for each part of a text between empty lines."""
    return "".join(f"<p>{inline(part)}</p>" for part in re.split(r"\n\s*\n", text.strip()))


def question(state: dict) -> str:
    """Return a question with its choices, and the answer in a fold."""
    choices = "".join(f"<li>{inline(choice)}</li>" for choice in state["choices"])
    right = "".join(f"<li>{inline(state['choices'][i])}</li>" for i in state["answers"])
    answer = f"<p>Right:</p><ul>{right}</ul>{paragraphs(state['explanation'])}"
    return (
        '<div class="admonition predict"><p class="admonition-title">Predict</p>'
        f"{paragraphs(state['question'])}<ul>{choices}</ul>"
        f"<details><summary>The answer</summary>{answer}</details></div>"
    )


def exercise(state: dict) -> str:
    """Return what an exercise offers for an answer, part by part, and where it is checked."""
    parts = []
    for title, labels in zip(state["titles"], state["labels"], strict=True):
        parts += [paragraphs(title)] if title else []
        if state["kind"] == "lines":
            lines = (f"{i:>3}  {escape(line)}\n" for i, line in enumerate(labels, start=1))
            parts.append(f"<pre>{''.join(lines)}</pre>")
        else:
            parts.append(f"<ul>{''.join(f'<li>{inline(label)}</li>' for label in labels)}</ul>")
    words = f"Here an answer is checked; it needs JavaScript. {state['summary']}"
    return f"{''.join(parts)}<p>{escape(words, quote=False)}</p>"


def fallback(state: dict) -> str:
    """Return the <noscript> for a widget of this state."""
    if {"question", "choices", "answers", "explanation"} <= state.keys():
        inside = question(state)
    elif {"kind", "titles", "labels", "summary"} <= state.keys():
        inside = f'<div class="course-without-script">{exercise(state)}</div>'
    else:
        words = (
            f"Here stands an interactive figure; it needs JavaScript. {state.get('summary', '')}"
        )
        inside = f'<p class="course-without-script">{escape(words.strip(), quote=False)}</p>'
    return f"<noscript>{inside}</noscript>"


def in_plain_words(state: dict) -> str:
    """Return a line or a few that stand in a notebook where no widget is drawn."""
    if "kind" in state:
        return "Run this cell for fields to answer in."
    if "question" not in state:
        return f"Run this cell for an interactive figure. {state.get('summary', '')}".strip()
    choices = "".join(f"\n  - {choice}" for choice in state["choices"])
    return f"Predict: {state['question']}{choices}\nRun this cell to commit to an answer."
