"""Loading another library's weights."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.attention import MultiHeadAttention
from attnlib.exercises._checking import check_function, not_yet
from attnlib.exercises._exercise import Mistake, exercise, from_museum
from attnlib.museum.outputs import UNTRANSPOSED


def _thirds(packed: Tensor) -> Sequence[Tensor]:
    return packed.chunk(3)


def _every_third(packed: Tensor) -> Sequence[Tensor]:
    return [packed[i::3] for i in range(3)]


def _columns(packed: Tensor) -> Sequence[Tensor]:
    """Read [3 d, d] as if it were [d, 3 d], and cut that."""
    return packed.view(packed.shape[1], -1).chunk(3, dim=1)


def _first_rows(packed: Tensor) -> Sequence[Tensor]:
    """Take the first third, three times."""
    return [packed[: len(packed) // 3]] * 3


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
                if biases:
                    targets[name].bias.copy_(bias)
            if out:
                block = theirs.out_proj.weight
                ours.W_o.weight.copy_(block.T if out_transpose else block)
                if out_bias:
                    ours.W_o.bias.copy_(theirs.out_proj.bias)
        return ours

    return load


_THEIRS = Mistake(
    lambda theirs: theirs,
    "You returned the module that you were given, or one of its kind. Return attnlib's "
    "MultiHeadAttention, with its weights.",
)


def _outputs_of(load: Callable) -> Callable:
    """Turn a loader into what its module computes, which is what can be compared."""

    def outputs(theirs: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor] | None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # whatever wasn't copied is then the same in every loader
            ours = load(theirs)
        if ours is None:
            return None
        if not isinstance(ours, nn.Module):
            raise TypeError(f"a module was wanted, but a {type(ours).__name__} came")
        if isinstance(ours, nn.MultiheadAttention):
            raise TypeError(_THEIRS.hint)
        return ours(x, need_weights=True)

    return outputs


_ROTATED = Mistake(
    _loader("kvq"),
    "None of the three blocks went to its own projection. The first d rows are the queries'; "
    "and then?",
)
LOADED_MISTAKES = (
    Mistake(
        lambda theirs: MultiHeadAttention(theirs.embed_dim, theirs.num_heads),
        "Your module still has its random start: none of the four tensors was copied into it.",
    ),
    Mistake(
        _loader("kqv"),
        "Queries and keys are swapped: the packed matrix holds q, then k, then v.",
    ),
    Mistake(
        _loader("qvk"),
        "The queries are right. Keys and values are swapped: the packed matrix holds q, then k, "
        "then v.",
    ),
    Mistake(
        _loader("vkq"),
        "The first and the last block went to the wrong projections: the first d rows belong to "
        "the queries.",
    ),
    _ROTATED,
    Mistake(
        _loader(biases=False),
        "The matrices are right; in_proj_bias wasn't copied to the three projections.",
    ),
    Mistake(
        _loader(transpose=True),
        "The blocks are transposed. Both libraries keep nn.Linear's layout [out, in], "
        "so nothing needs turning. (A square matrix doesn't complain when you turn it.)",
    ),
    Mistake(
        _loader(out=False),
        "The weights agree, the output doesn't: out_proj wasn't copied to W_o.",
    ),
    Mistake(
        _loader(biases=False, out_bias=False),
        "The four matrices are right, and none of the biases was copied: in_proj_bias holds three "
        "of them, out_proj.bias is the fourth.",
    ),
    Mistake(
        _loader(out_bias=False),
        "All is right but the last addition: out_proj.bias wasn't copied to W_o.bias.",
    ),
    from_museum(UNTRANSPOSED, _loader(out_transpose=True)),
    Mistake(
        _loader(transpose=True, out_transpose=True),
        "All four matrices are transposed. Both libraries keep nn.Linear's layout [out, in]: copy "
        "them as they are.",
    ),
    Mistake(
        _loader(biases=False, out=False),
        "W_q, W_k and W_v are right. Their biases and the output projection are still random.",
    ),
    Mistake(
        _loader(cut=_every_third),
        "You took every third row. The blocks stand one below the other, d rows each.",
    ),
    Mistake(
        _loader(cut=_columns, biases_like_weights=False),
        "You read the packed matrix as [d, 3 d] and cut its columns. It is [3 d, d]: nothing needs "
        "another shape, the three blocks stand one below the other.",
    ),
    Mistake(
        _loader(cut=_first_rows),
        "All three projections got the same rows, the first d of 3 d.",
    ),
)
# The same mistakes in other clothes.
_TOO = (replace(_ROTATED, answer=_loader("vqk")),)


@exercise(mistakes=(*LOADED_MISTAKES, _THEIRS))
def loaded(answer: Any) -> Verdict:
    """Check `load(theirs)`, which returns an attnlib module with a torch module's weights."""
    cases = []
    for h, d in ((3, 12), (2, 10)):
        theirs = nn.MultiheadAttention(d, h, batch_first=True)
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
        cases.append((theirs, torch.randn(2, 5, d)))

    def reference(theirs: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
        return theirs(x, x, x, average_attn_weights=False)

    verdict = check_function(
        answer,
        reference,
        cases,
        (*LOADED_MISTAKES, *_TOO),
        output_names=["the output of your module", "the weights of your module"],
        as_function=_outputs_of,
        praise="Output and every head's weights equal those of nn.MultiheadAttention.",
    )
    return not_yet(_THEIRS.hint) if _THEIRS.hint in verdict.message else verdict
