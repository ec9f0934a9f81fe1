"""Loading another library's weights."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from attncourse.checking import CheckResult, exercise, from_museum, read_mistakes
from attncourse.checking.calling import outputs_of
from attncourse.checking.functions import check_function, not_yet
from attndoctor.museum.outputs import UNTRANSPOSED
from attnlib.attention import MultiHeadAttention


def _thirds(packed: Tensor) -> Sequence[Tensor]:
    return packed.chunk(3)


def _columns(packed: Tensor) -> Sequence[Tensor]:
    """Read [3 d, d] as if it were [d, 3 d], and cut that."""
    return packed.view(packed.shape[1], -1).chunk(3, dim=1)


def _loader(
    order: str = "qkv",
    *,
    biases: bool = True,
    transpose: bool = False,
    out: bool = True,
    out_bias: bool = True,
    out_transpose: bool = False,
    cut: Callable[[Tensor], Sequence[Tensor]] = _thirds,
    biases_like_weights: bool = True,
    key_bias: bool = True,
) -> Callable[[nn.MultiheadAttention], MultiHeadAttention]:
    """Make a loader that copies a torch module's weights, possibly with a mistake."""

    def load(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        targets = {"q": ours.W_q, "k": ours.W_k, "v": ours.W_v}
        with torch.no_grad():
            blocks = cut(theirs.in_proj_weight)
            rows = (cut if biases_like_weights else _thirds)(theirs.in_proj_bias)
            for name, block, bias in zip(order, blocks, rows, strict=True):
                targets[name].weight.copy_(block.T if transpose else block)
                if biases and (key_bias or name != "k"):
                    targets[name].bias.copy_(bias)
            if out:
                block = theirs.out_proj.weight
                ours.W_o.weight.copy_(block.T if out_transpose else block)
                if out_bias:
                    ours.W_o.bias.copy_(theirs.out_proj.bias)
        return ours

    return load


MISTAKES = (
    *read_mistakes("loaded", globals()),
    from_museum(UNTRANSPOSED, _loader(out_transpose=True)),
)
NOTICED = read_mistakes("noticed", globals())  # before its module can be called


def _run(ours: object, x: Tensor) -> tuple[Tensor | None, ...]:
    """Return a module's output, weights and key bias, which neither of them shows."""
    if not isinstance(ours, MultiHeadAttention):
        raise TypeError(loaded.hints["theirs"])
    bias = ours.W_k.bias
    return *ours(x, need_weights=True), x.new_zeros(x.shape[-1]) if bias is None else bias


@exercise(mistakes=(*MISTAKES, *NOTICED))
def loaded(answer: object) -> CheckResult:
    """Check `load(theirs)`, which returns an attnlib module with a torch module's weights."""
    cases = []
    for h, d in ((3, 12), (2, 10)):
        theirs = nn.MultiheadAttention(d, h, batch_first=True)
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
        cases.append((theirs, torch.randn(2, 5, d)))

    def reference(theirs: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        key_bias = theirs.in_proj_bias.chunk(3)[1]
        return *theirs(x, x, x, average_attn_weights=False), key_bias

    praise = "Output and every head's weights equal those of nn.MultiheadAttention."
    result = check_function(
        answer,
        reference,
        cases,
        MISTAKES,
        output_names=[f"your module's {what}" for what in ("output", "weights", "bias of W_k")],
        as_function=partial(outputs_of, run=_run),
        praise=praise,
    )
    return not_yet(loaded.hints["theirs"]) if loaded.hints["theirs"] in result.message else result
