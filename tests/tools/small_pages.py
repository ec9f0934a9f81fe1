"""The pages of two small sites: in one nothing is wrong, the other is made of mistakes.

Each is built once in a run (site/conftest.py), and the tests ask it what they want to know.
"""

from tools import ROOT
from tools.every_widget import NAMES
from tools.lesson_runs import NOTEBOOK

# Each of the following returns the text of a part of a page, or its code.


def cell(code: str, tags: str = "") -> str:
    return f"```{{code-cell}} ipython3\n:tags: [{tags}]\n\n{code}\n```\n"


def drawing(name: str, alt: str, caption: str, code: str, tags: str = "") -> str:
    figure = f'figure: {{name: fig-{name}, caption: "{caption}"}}'
    head = f"tags: [{tags}]\nmystnb: {{image: {{alt: {alt}}}, {figure}}}"
    return f"```{{code-cell}} ipython3\n---\n{head}\n---\n{code}\n```\n"


def svg(size: str, inside: str = "") -> str:
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return f"from IPython.display import SVG\nSVG('{begin}{inside}</svg>')"


def exercise(name: str, *parts: str, effort: str = "★ 5 minutes") -> str:
    begin = f"```{{exercise-start}} Do it\n:label: ex-{name}\n```\n{{effort}}`{effort}` Text of "
    return f"{begin}{name}.\n\n" + "\n".join(parts) + "\n```{exercise-end}\n```\n"


def predict(question: str, choices: str = '"this", "that"', right: int = 0, tags: str = "") -> str:
    asked = f'Predict("{question}", [{choices}], {right}, "Count.")'
    return cell(f"from attncourse.widgets import Predict\n{asked}", tags)


def answer(check: str, tags: str = "") -> str:
    return cell(f"from attncourse.lessons import l03, l04, l05\n{check}.on_page()", tags)


def notebook(*parts: str) -> str:
    return NOTEBOOK + "\n" + "\n".join(parts)


SMALL = 'width="9pt" height="6pt"'
ADDRESS = "https://example.org/course/"  # where the first would be published; and its source
REPOSITORY = "https://github.com/OWNER/COURSE"

# --- nothing is wrong -----------------------------------------------------------------------------

INDEX = """# Start

Nothing is asked here.

(how-to-run)=
## Run it

{effort}`★★★ 1 minute` Go.

{effort}`★★★ 1 minutes` Go.
"""
PLAIN = """# Plain

A page that speaks \\
of *aardvarks* & "ants", and has no code.

Of 2 formulas $x^2$ nothing is said.

```{note}
A box isn't how it begins.
```

- Nor is a list, such as of {ref}`ex-write`.
"""
TOLD = """# Told

```{lesson-times}
Only in the source.
```

Part {counted}`L99#a-part`, with the exercise {counted}`L99#a-part ex-l99-begin`, from here on
{counted}`L97...`, of which to solve {counted}`L97...:exercises`.

```{class-questions}
Only in the source.
```

```{myths}
Only in the source.
```
"""
QUESTION = predict("What is `6 * 7`?", '"41", "*42*", "43"', 1, "remove-input")
ONE = "\n## Next\n".join([
    QUESTION, predict("And 6 * 8?", '"46", "48"', 1), answer("l03.softmax_row"),
    answer("l05.diagnosis"),
])  # fmt: skip

# What the switch between reading and coding does to cells: each shows its name where it is open.
FEW_LINES = '_ = 1\n_ = 2\n_ = 3\n_ = 4\n_ = 5\n\n"code of {name}".removeprefix("code of ")'
LINES = "_ = 0\n" + FEW_LINES
STUB = f"print('Not' + ' yet')\n{LINES}"
SOLUTION = """```{solution-start} ex-write
:label: sol-write
:class: dropdown
```
Text of solution.
```{solution-end}
```
"""
PROSE = "Words that are read.\n\n" * 40
SWITCH = notebook(
    "# Page", cell(LINES.format(name="import"), "hide-input"),
    drawing("dot", "A dark little dot.", "Dot (hand-built).", svg('width="240pt" height="60pt"'),
            "remove-input"),
    "After this lesson you can\n\n* do it ({ref}`ex-write`).\n\n## Begin",
    cell(LINES.format(name="example")), PROSE, cell(LINES.format(name="module"), "stays-open"),
    cell(LINES.format(name="drawing"), "hide-input"),
    cell(LINES.format(name="gone"), "remove-input"), cell(FEW_LINES.format(name="few lines")),
    exercise("pick", cell(STUB.format(name="doubled"), "exercise-stub"),
             answer("l04.idle_bias", "exercise-page")),
    exercise("write", cell(STUB.format(name="stub"), "exercise-stub"), effort="★★ 10 minutes"),
    SOLUTION, "[To the exercise](#ex-write)", PROSE, cell(LINES.format(name="second")),
    "The last words.\n", PROSE,
)  # fmt: skip

# What answers a prediction: what is printed, prose, a table, a list, a figure, and what else it is.
COVERS = notebook(
    "# Page", "See {numref}`fig-covered`. [There](#next)", cell("'before all'"),
    predict("What is first?", tags="remove-input"), "Open prose.\n",
    cell("'output ' + 'answers'", "answer"), "{.answer}\nProse answers: $x$.\n",
    "{.answer}\n| a table |\n|---|\n| answers |\n", "Right below.\n", "(next)=\n## Next",
    "Below a heading. " * 300, "", ":::{container} answer\n* a list answers\n:::\n",
    predict("What is asked in vain?"), predict("What is third?"),
    drawing("covered", "A dark little dot.", "Dot (hand-built).",
            'print("print" + "ed beside it")\n' + svg('width="240pt" height="60pt"'), "answer"),
    "Said of the dot.", predict("What is fourth?"), "{.answer}\nThe fourth.\n",
    predict("What is fifth?").replace("Predict(", "p = Predict(").replace(
        '.")\n', '.")\np.choice, p.committed = 0, True\np\n'), "{.answer}\nKept open.\n",
)  # fmt: skip

TERMS = "+".join(f"x_{{{i}}}" for i in range(40))
FORMULAS = rf"""# Page

(The width $d_k$), is
small: $a<b$.

Second line.

$$
\begin{{aligned}}a &= b \\[4pt]
c &= d\end{{aligned}}
$$ (two)

See {{eq}}`two`. (And ${TERMS}$).

## Why the root of $d_k$
"""

# What a notebook has to say in plain Markdown.
WHOLE = notebook(
    """# Page | one

(here)=
## Here & there

*Stars*, `code | bar`, $a | b$, a_name, 2 * 3 * 4, 1 < 2; 100 \\$ or 200 \\$. See
[below](#there) and [the other page](plain.md),
and [elsewhere](https://example.org/x_y).

1. first

   with more
2. `second`
   * inner

> quoted
> twice

| left | right |
|---|---|
| `a \\| b` | $x_1$ |

term
: Its meaning.

```python
plain = "code"
```
""",
    cell("hidden = 1", "remove-cell"), "3\\. no list\n\n(there)=\n## There\n", cell("hidden + 1"),
)  # fmt: skip
LAB = notebook(
    "# Lesson",
    cell("from attnlib import plotting\nfrom attncourse.glue import glue\n"
         "plotting.use_course_style()"),
    cell('glue("l97_loss", f"{1 / 3:.2f}")'), "The loss is {eval}`l97_loss`, measured.\n",
    drawing("l97-map", "Two by two cells.", "*Equal* weights (hand-built).",
            'import torch\nplotting.plot_heads(torch.full((1, 2, 2), 0.5), ["a", "b"])'),
    cell('print("the end")'),
)  # fmt: skip
CLASS = notebook(
    "# L99 · A lesson\n", QUESTION, "## A part\n", "Word " * 399 + "word.\n",
    exercise("l99-begin", cell("1 + 1")), "## Another\n",
    exercise("l99-end", cell("1 + 2"), effort="★★ 10 minutes"),
    SOLUTION.replace("write", "l99-begin"),
)  # fmt: skip
SAID = notebook(
    """# L78 · A lesson

About 12 minutes to read.

```{code-cell} ipython3
---
myths:
  - said: The `first` is told in passing.
    truth: It isn't, says $x$.
  - said: So is the second.
    truth: Not {eval}`l78_number` *times*.
---
from myst_nb import glue
glue("l78_number", "twelve", display=False)
```

```{code-cell} ipython3
---
mystnb:
  image: {alt: A square of one color.}
  figure: {name: fig-l78-square, caption: A square (hand-built).}
myths:
  - said: A figure settles nothing.
    truth: This one does.
---""" + f"\n{svg(SMALL, '<path/>')}\n```\n",
    """## What is often said, and what is true

| what is said | what is true |
|---|---|
| "Rows have cells." | They do (cell 1). |
| "Numbers are typed." | It was {eval}`l78_number` ([above](#l78--a-lesson)). |
| "Nobody settled it." | Others did. |

| other | table |
|---|---|
| no | myth |
""",
    cell('print("settled")  # cell 1'),
)  # fmt: skip
FIGURES = notebook(
    "# Page\n\nBefore it.\n",
    drawing("wide", "A wide rectangle of one color.", "A rectangle (hand-built).",
            svg('width="150pt" height="50pt" viewBox="0 0 150 50"',
                '<rect width="150" height="50" fill="#1F2328"/>')),
    "Behind it.\n",
    drawing("maps", "Three maps of heads.", "Maps.",
            "import torch\nfrom attnlib import plotting\nplotting.use_course_style()\n"
            "plotting.plot_heads(torch.eye(4).repeat(3, 1, 1))"),
    drawing("line", "A line of a foot or so.", "Line.",
            svg('width="900pt" height="6pt"', '<path fill="red"/>')),
    cell(LINES.format(name="figures")),
)  # fmt: skip

# Every interactive figure whose state can be sent as a link; one of them twice. They are the small
# ones of the widgets' own tests; but Flow has a link of an earlier edition, and labs are to train.
STATES = {
    **{name: f"about('{name}').example('word')" for name in NAMES},
    "flow": "Flow()", "head_lab": "HeadLab()", "name_lab": "NameLab()",
}  # fmt: skip
del STATES["predict"], STATES["answer"]  # which are kept as answers are
SETUP = f"""import sys
sys.path += {[str(ROOT / "tests"), str(ROOT / "book/extensions")]}
from attncourse.widgets import *
from tools.every_widget import about"""
SHOWN_TWICE = STATES["query_compass"]

RIGHT = {
    "index": INDEX, "told": TOLD, "plain": PLAIN, "switch": SWITCH, "covers": COVERS,
    "formulas": FORMULAS, "figures": FIGURES,
    "states": notebook("# Page\n", *map(cell, (SETUP, *STATES.values(), SHOWN_TWICE))),
    "whole": WHOLE, "L78_Said": SAID, "L91_One": notebook("# One", ONE), "L97_Lab": LAB,
    "L99_Class": CLASS,
}  # fmt: skip

# --- mistakes -------------------------------------------------------------------------------------

FORMULA_MISTAKES = {
    r"\foo{x}": r'at character 0: Unknown command "\foo"',
    r"\frac{1}{": "Expected closing token",
    r"\begin{aligned}a\\[b]\end{aligned}": "a bracket is taken for a length",
    r"a \\ b": "only inside an environment",
    r"\begin{split}a\end{split}": "Unknown environment",
}
EFFORT_MISTAKES = "2 10", "★ 10", "★★", "★ 0 minutes", "★ 10 hours", "★★★★ 10 minutes", "two 10"
COUNTED_MISTAKES = "L70", "L78#nowhere", "ex-l78-none", "L78:pages"


def lines_of(role: str, texts) -> str:
    """Return a page with each text in its line: the first is line 3, the next line 5."""
    return "# Page\n\n" + "\n\n".join(role.format(text) for text in texts) + "\n"


WRONG = {
    "index": notebook(
        "# Page\n\n{numref}`fig-nowhere`, [no page](L00_Nowhere.md), {cite:p}`nobody1900` and\n"
        "[no heading](#no-such-heading).\n",
        "```{code-cell} ipython3\nimport warnings\nwarnings.warn('look here')\n```\n",
        ":::{sidebar} Aside\nText.\n:::\n",
    ),
    "formulas": lines_of("Text ${}$.", FORMULA_MISTAKES),
    "effort": lines_of("{{effort}}`{}` Do it.", EFFORT_MISTAKES),
    "counted": lines_of("{{counted}}`{}`", COUNTED_MISTAKES),
    "covers": notebook(
        "# Page\n\n{.answer}\nTo no question.\n", QUESTION, predict("A cover?", tags="answer")
    ),
    "told": "# Myths\n\n```{myths}\nOnly in the source.\n```\n",
    "L78_Said": SAID.replace("  # cell 1", "")
    .replace("---\nmyths:", "---\ntags: [remove-cell]\nmyths:", 1)
    .replace("[above](#l78", "[above](#not-l78"),
    "L79_Half": notebook(
        "# L79 · Half\n", "```{code-cell} ipython3\n---\nmyths:\n  - said: It is.\n---\n1\n```\n"
    ),
}
