"""Checks of L04 on whole modules: a broken one, another library's, and what a head reads."""

import math
from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.attention import MultiHeadAttention
from attnlib.exercises._checking import Mistake, check_function, keeps_random_state
from attnlib.functional import split_heads
from attnlib.museum import attend
from attnlib.museum._steps import Steps
from attnlib.museum.heads import HEADS_OF_ONE_TOKEN, MERGE, VIEW
from attnlib.museum.scores import SOFTMAX_OVER_QUERIES, SQRT_D_MODEL

# --- mending a module ---------------------------------------------------------------------------

_BUGS = {
    "the split": VIEW,
    "the scale": SQRT_D_MODEL,
    "the softmax": SOFTMAX_OVER_QUERIES,
    "the merge": MERGE,
}


def _with_steps(replaced: dict[str, Any]) -> Callable[..., Tensor]:
    """Multi-head attention with plain matrices (x @ W), in which some steps are replaced."""
    steps = Steps(**replaced)

    def mend(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
        q, k, v = (steps.split(x @ W, h) for W in (W_q, W_k, W_v))
        return steps.merge(attend(q, k, v, **replaced)[0]) @ W_o

    return mend


def _with_bugs(bugs: Collection[str]) -> Callable[..., Tensor]:
    return _with_steps({name: step for bug in bugs for name, step in _BUGS[bug].steps.items()})


def _hint(bugs: Collection[str]) -> str:
    if len(bugs) == 1:
        return _BUGS[next(iter(bugs))].hint
    if len(bugs) == len(_BUGS):
        return "All four bugs are still there. Ask of each line: which axis is this, and how wide?"
    return f"{len(bugs)} bugs are left. Look again at {', '.join(bugs)}."


def _merge_with_a_transpose(heads: Tensor) -> Tensor:
    """Undo a transpose that the split didn't make."""
    B, T, h, d_k = heads.shape
    return heads.transpose(1, 2).reshape(B, T, h * d_k)


MENDED_MISTAKES = (
    *(
        Mistake(" and ".join(bugs), _with_bugs(bugs), _hint(bugs))
        for count in range(1, len(_BUGS) + 1)
        for bugs in combinations(_BUGS, count)
    ),
    Mistake(
        "split without its transpose",
        _with_steps(HEADS_OF_ONE_TOKEN.steps | {"merge": _merge_with_a_transpose}),
        "The view is right, but its axes T and h aren't swapped yet: as it is, the scores compare "
        "the heads of one token instead of the tokens of one head.",
    ),
    Mistake(
        "split without its transpose, nor the merge",
        _with_steps(HEADS_OF_ONE_TOKEN.steps),
        "Scale and softmax are right. The scores compare the heads of one token, though: a "
        "transpose is missing after the view, and then one before the merge.",
    ),
)


def _module_cases() -> list[tuple[Any, ...]]:
    """Random inputs whose sizes all differ, so that no two axes can be confused unnoticed."""
    cases = []
    for B, T, h, d_k in ((2, 5, 3, 4), (3, 4, 2, 5), (1, 6, 4, 2)):
        d = h * d_k
        matrices = [torch.randn(d, d) / math.sqrt(d) for _ in range(4)]
        cases.append((2 * torch.randn(B, T, d), *matrices, h))
    return cases


@keeps_random_state
def mended(answer: Any) -> Verdict:
    """Check the repaired function `attend(x, W_q, W_k, W_v, W_o, num_heads)`."""
    return check_function(
        answer,
        _with_bugs(()),
        _module_cases(),
        MENDED_MISTAKES,
        output_names=["the output"],
        praise="All four bugs are gone, on inputs where B, T, h and d_k all differ.",
    )


# --- weights of another library -----------------------------------------------------------------


def _loader(
    order: str = "qkv", *, biases: bool = True, transpose: bool = False, out: bool = True
) -> Callable[[nn.MultiheadAttention], MultiHeadAttention]:
    """Make a loader that copies a torch module's weights, possibly with a mistake."""

    def load(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
        ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
        targets = {"q": ours.W_q, "k": ours.W_k, "v": ours.W_v}
        with torch.no_grad():
            for i, name in enumerate(order):
                rows = slice(i * theirs.embed_dim, (i + 1) * theirs.embed_dim)
                block = theirs.in_proj_weight[rows]
                targets[name].weight.copy_(block.T if transpose else block)
                if biases:
                    targets[name].bias.copy_(theirs.in_proj_bias[rows])
            if out:
                ours.W_o.weight.copy_(theirs.out_proj.weight)
                ours.W_o.bias.copy_(theirs.out_proj.bias)
        return ours

    return load


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
        return ours(x, need_weights=True)

    return outputs


LOADED_MISTAKES = (
    Mistake(
        "nothing copied",
        lambda theirs: MultiHeadAttention(theirs.embed_dim, theirs.num_heads),
        "Your module still has its random start: none of the four tensors was copied into it.",
    ),
    Mistake(
        "queries and keys swapped",
        _loader("kqv"),
        "Queries and keys are swapped: the packed matrix holds q, then k, then v.",
    ),
    Mistake(
        "order v, k, q",
        _loader("vkq"),
        "The blocks went to the wrong projections: the first d rows belong to the queries.",
    ),
    Mistake(
        "no biases",
        _loader(biases=False),
        "The matrices are right; in_proj_bias wasn't copied to the three projections.",
    ),
    Mistake(
        "transposed",
        _loader(transpose=True),
        "The blocks are transposed. Both libraries keep nn.Linear's layout [out, in], "
        "so nothing needs turning. (A square matrix doesn't complain when you turn it.)",
    ),
    Mistake(
        "no output projection",
        _loader(out=False),
        "The weights agree, the output doesn't: out_proj wasn't copied to W_o.",
    ),
)


@keeps_random_state
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

    return check_function(
        answer,
        reference,
        cases,
        LOADED_MISTAKES,
        output_names=["the output of your module", "the weights of your module"],
        as_function=_outputs_of,
        praise="Output and every head's weights equal those of nn.MultiheadAttention.",
    )


# --- what a head reads --------------------------------------------------------------------------


def _gradient(head: int, heads_of: Callable, x: Tensor, select: bool = True) -> Tensor:
    x = x.clone().requires_grad_()
    heads = heads_of(x)
    # Squares: a plain sum can have gradient 0 where positive and negative effects cancel.
    target = heads[:, head] if select else heads
    return torch.autograd.grad(target.pow(2).sum(), x)[0]


def _reads(head: int, heads_of: Callable, x: Tensor) -> Tensor:
    return (_gradient(head, heads_of, x) != 0).flatten(0, 1).any(0)


READS_MISTAKES = (
    Mistake(
        "heads counted from 1",
        lambda head, heads_of, x: _reads(head - 1, heads_of, x),
        "This is what the head before it reads: `head` counts from 0, so take heads[:, head].",
    ),
    Mistake(
        "assumed a slice",
        lambda head, heads_of, x: (
            torch.arange(x.shape[-1]) // heads_of(x).shape[-1] == head
        ),
        "You assumed a slice. Measure instead: ask autograd what moves the head's output.",
    ),
    Mistake(
        "all heads at once",
        lambda head, heads_of, x: (
            (_gradient(head, heads_of, x, select=False) != 0).flatten(0, 1).any(0)
        ),
        "You found everything even where a head is cut off from the rest. Take the gradient of "
        "heads[:, head] alone, not of all heads together.",
    ),
    Mistake(
        "gradients themselves",
        lambda head, heads_of, x: _gradient(head, heads_of, x),
        "You returned the gradient [B, T, d]. Wanted is one answer an input number: "
        "is it non-zero for any sample and token?",
    ),
)  # fmt: skip


def _sliced_heads(num_heads: int, d: int) -> Callable[[Tensor], Tensor]:
    """The impostor: each head's q, k, v are made from its own slice of the embedding alone."""
    d_k = d // num_heads
    matrices = torch.randn(3, num_heads, d_k, d_k)

    def heads_of(x: Tensor) -> Tensor:
        q, k, v = (split_heads(x, num_heads) @ W for W in matrices)
        return (q @ k.transpose(-2, -1) / math.sqrt(d_k)).softmax(-1) @ v

    return heads_of


def _real_heads(num_heads: int, d: int) -> Callable[[Tensor], Tensor]:
    matrices = torch.randn(3, d, d) / math.sqrt(d)

    def heads_of(x: Tensor) -> Tensor:
        q, k, v = (split_heads(x @ W, num_heads) for W in matrices)
        return (q @ k.transpose(-2, -1) / math.sqrt(d // num_heads)).softmax(-1) @ v

    return heads_of


@keeps_random_state
def reads(answer: Any) -> Verdict:
    """Check `reads(head, heads_of, x)`: which of the d input numbers head `head` depends on.

    `heads_of(x)` returns the heads' outputs [B, h, T, d_k]; wanted is a boolean tensor [d].
    """
    cases = []
    for make in (_real_heads, _sliced_heads):
        for h, d_k in ((3, 4), (4, 2)):
            cases.append((h - 2, make(h, h * d_k), torch.randn(2, 5, h * d_k)))
    return check_function(
        answer,
        _reads,
        cases,
        READS_MISTAKES,
        output_names=["your answer"],
        praise="All of the embedding for real heads, one slice for the impostor.",
    )
