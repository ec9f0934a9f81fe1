"""GptSteps: a debugger that steps through a GPT's plain loop, token by token."""

from collections.abc import Iterable, Sequence

import traitlets

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets.gpt_steps.code import LINES, helpers_of, lines_of
from attncourse.widgets.gpt_steps.model import LONGEST, checked_form, checked_name, checked_tokens
from attncourse.widgets.head_lab.model import weights_of
from attnlib.checks import checked_texts, require_text
from attnlib.model import TransformerModel


class GptSteps(CourseWidget):
    """A debugger for a GPT: its forward pass as plain Python, line by line, for one name.

    Beside the 25 lines stand their lists: those of the token that is read, the keys and values of
    all tokens so far (the cache), the weights of each head, the chances of the next letter. The
    line that runs is lit, and framed what it reads and makes. A reader steps, goes on to the next
    token, plays, jumps to a line, types another name. The browser computes all of it. In a
    notebook::

        model = train(RECIPES["names"], seed=0).model
        widget = GptSteps(model, ["tollas", "emma"], origin="trained (seed 0)")
        widget                                     # show it
        widget.line = "scores"                     # go to a line
        print(widget.code[15])                     # "        scores = [..."
        widget.observe(lambda change: print(change["new"]), "line")

    Traits that a reader changes:
        name (str): the name that is read, in the model's letters.
        token (int): at which of its tokens the loop is, 0 for the boundary before it. Where the
            name is shorter, its last one is shown.
        line (str): the line that has just run: "cache", "token", "embed", "norm_1", "q", "k", "v",
            "append_k", "append_v", "joined", in the loop over heads "head", "own", "q_h", "k_h",
            "v_h", "scores", "weights" and "mix", then "output" (W_o), "residual_1", "norm_2",
            "hidden", "residual_2", "logits" and "chances".
        head (int): which head's turn it is in the loop over heads, and elsewhere whose part of the
            lists is marked, 0-based.

    `code` holds the loop's lines, and `helpers` the functions that it calls. Both run where
    `tokens`, `places`, `W_q` and the like are the model's weights as lists, and `name` is a list of
    ids.

    Args:
        model: a GPT of one block, as attnlib.model.GPT makes it: learned positions, pre-norm,
            LayerNorm or RMSNorm. Dropout is left out, as by `model.eval()`.
        names: names to choose from; the first is shown.
        vocabulary: a character per token; those of `attncourse.tasks.names` if left out.
        boundary: the token before and after a name.
        origin: where the weights come from, shown to the reader: "random (seed 0)", "trained (seed
            3)".

    Raises:
        TypeError, ValueError: a model that the loop can't walk through, with the reason; another
            argument isn't as above.
    """

    _esm, _css = browser_files("gpt_steps")
    summary = summary_trait(
        "A GPT's forward pass as 25 lines of plain Python, run step by step for one name, with the "
        "numbers that each line reads and makes, and the growing cache of keys and values."
    )

    names = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    vocabulary = traitlets.Unicode(read_only=True).tag(sync=True)
    boundary = traitlets.Unicode(read_only=True).tag(sync=True)
    spec = traitlets.Dict(read_only=True).tag(sync=True)
    weights = Numbers()
    code = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    helpers = traitlets.Unicode(read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
    token = traitlets.Int(0).tag(sync=True)
    line = traitlets.Enum(LINES, LINES[0]).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        model: TransformerModel,
        names: Sequence[str] = ("emma", "tollas", "bellen"),
        *,
        vocabulary: Iterable[str] | None = None,
        boundary: str = ".",
        origin: str = "as given",
    ) -> None:
        spec = checked_form(model)
        tokens = checked_tokens(spec, vocabulary, boundary)
        require_text("origin", origin)
        most = min(spec["length"], LONGEST) - 1
        checked = [
            checked_name(name, tokens, boundary, most) for name in checked_texts("names", names)
        ]
        super().__init__(
            names=checked,
            vocabulary=tokens,
            boundary=boundary,
            spec=spec,
            weights=weights_of(model),
            code=lines_of(spec),
            helpers=helpers_of(spec),
            origin=origin,
            name=checked[0],
        )

    def __repr__(self) -> str:
        return f"GptSteps({self.name!r}, token {self.token}, head {self.head}, at {self.line})"
