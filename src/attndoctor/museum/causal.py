"""Exhibits about who stands to the left of whom."""

import torch
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit, Thread


def triangle_turned(T_q: int, T_k: int) -> Tensor:
    """Allow the upper triangle."""
    # right: .tril
    return torch.ones(T_q, T_k, dtype=torch.bool).triu(T_k - T_q)


TURNED = Exhibit(
    name="causal triangle turned around",
    steps={"triangle": triangle_turned},
    story="`triu` or `tril`, True for allowed or True for hidden: two choices, and two wrong ones "
    "that cancel. One wrong one is left over when only half of the code is changed.",
    cause="Each token looks at itself and to its right, so the model reads the answer that it is "
    "to predict.",
    notice="The training loss falls to nearly nothing, and generated text is nonsense. Look at "
    "row 0: it must be 1 for itself and 0 elsewhere.",
    hint="Your causal mask allows the upper triangle, which is the future. Rows look to their "
    "left: tril.",
    killed_by="causal",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/29546",
        "the library's own function for this mask returned it flipped.",
    ),
)


def triangle_without_diagonal(T_q: int, T_k: int) -> Tensor:
    """Allow what stands to the left."""
    # right: no - 1
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q - 1)


NO_DIAGONAL = Exhibit(
    name="causal mask hides the token itself",
    steps={"triangle": triangle_without_diagonal},
    story="The diagonal belongs to the allowed part. `triu` of what is hidden must start at 1, "
    "and by default it starts at 0.",
    cause="One diagonal too many is hidden, so no token sees itself and the first one sees nothing "
    "at all.",
    notice="Row 0 has nowhere to look. With -inf it is NaN, which is the lucky case: with a finite "
    "fill value it becomes an equal look at the whole future.",
    hint="Your causal mask hides the diagonal. A token may look at itself.",
    killed_by="causal",
    thread=Thread(
        "https://github.com/pbloem/former/issues/10",
        "a blog's code hid the diagonal, its repository no longer did; the author fixed the blog.",
    ),
)


def triangle_with_the_next(T_q: int, T_k: int) -> Tensor:
    """Allow one diagonal more."""
    # right: no + 1
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q + 1)


PEEKS_AHEAD = Exhibit(
    name="causal mask peeks one ahead",
    steps={"triangle": triangle_with_the_next},
    story="The same slip in the other direction: `tril(1)`, copied from a `triu(1)`.",
    cause="Each token sees the next one, which is exactly what a language model is to predict.",
    notice="A loss that is too good. Change one token, and look at the outputs before it: none "
    "may move, and under this bug exactly one does.",
    hint="Your causal mask shows the next token. The last diagonal that is allowed is the token "
    "itself.",
    killed_by="causal",
)


def triangle_top_left(T_q: int, T_k: int) -> Tensor:
    """Align the triangle with the first key."""
    # right: .tril(T_k - T_q)
    return torch.ones(T_q, T_k, dtype=torch.bool).tril()


TOP_LEFT = Exhibit(
    name="causal mask ignores the cache",
    steps={"triangle": triangle_top_left},
    story="Without a cache there are as many queries as keys, and the triangle's corner is no "
    "question. With one, 1 new query meets T keys. `F.scaled_dot_product_attention(..., "
    "is_causal=True)` counts from the top left.",
    cause="The only query is taken for token 0, so it sees the first key and nothing else, "
    "however long the text is.",
    notice="Training is perfect and generation is nonsense from the second token on. Feed a text "
    "token by token and compare with one pass: both must agree to rounding.",
    hint="Your causal mask starts at the first key. With a cache the queries are the last T_q of "
    "T_k tokens: move the diagonal by T_k - T_q.",
    killed_by="a cache",
    thread=Thread(
        "https://github.com/pytorch/pytorch/issues/144858",
        "a single query with a cache sees only the earliest key, and the same vector is generated "
        "again and again.",
    ),
)


def first_mask_alone(masks: list[Tensor]) -> Tensor | None:
    """Choose one mask: `if mask is not None: ... elif causal: ...`."""
    # right: all of them, joined by &
    return masks[0] if masks else None


NOT_CAUSAL = Exhibit(
    name="a mask switches causality off",
    steps={"combine": first_mask_alone},
    story="`F.scaled_dot_product_attention` refuses a mask together with is_causal=True. So one "
    "writes is_causal=mask is None, and thinks of the mask as the special case.",
    cause="As soon as a batch has padding, the triangle is gone, and every token reads the future.",
    notice="The loss is too good, but only in batches with padding. Change the last real token of "
    "a padded sample: no earlier output may move.",
    hint="With a mask your attention isn't causal any more: a look must be allowed by the mask and "
    "by the triangle.",
    killed_by="limits together",
    thread=Thread(
        "https://github.com/keras-team/keras/pull/23040",
        "found in review: with a mask of its own, a library's layer didn't apply the causal one.",
    ),
)

EXHIBITS = (TURNED, NO_DIAGONAL, PEEKS_AHEAD, TOP_LEFT, NOT_CAUSAL)
