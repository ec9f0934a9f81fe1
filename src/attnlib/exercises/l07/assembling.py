"""A GPT put together from its parts: tables, blocks, a norm, a readout."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnlib._verdict import Verdict
from attnlib.blocks import TransformerBlock
from attnlib.exercises._checking import check_function
from attnlib.exercises._exercise import Mistake, exercise
from attnlib.norms import LayerNorm

Blocks = Sequence[TransformerBlock]
Part = Callable[[Tensor], Tensor]
Function = Callable[[Tensor, Tensor, Tensor, Blocks, Part, Part], Tensor]


def _start(ids: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return tokens[ids] + places[: ids.shape[1]]  # [B, T] -> [B, T, d]


def _through(x: Tensor, blocks: Blocks, *, causal: bool = True) -> Tensor:
    for block in blocks:
        x = block(x, causal=causal)[0]
    return x


def assembled(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    """Return logits [B, T, V] of ids [B, T]."""
    return readout(final_norm(_through(_start(ids, tokens, places), blocks)))


def _without_mask(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _through(_start(ids, tokens, places), blocks, causal=False)
    return readout(final_norm(x))


def _multiplied(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _through(tokens[ids] * places[: ids.shape[1]], blocks)
    return readout(final_norm(x))


def _places_of_ids(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _through(tokens[ids] + places[ids], blocks)
    return readout(final_norm(x))


def _places_in_every_block(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = tokens[ids]
    for block in blocks:
        x = _through(x + places[: ids.shape[1]], [block])
    return readout(final_norm(x))


def _added_again(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _start(ids, tokens, places)
    for block in blocks:
        x = x + _through(x, [block])
    return readout(final_norm(x))


def _normed_in_the_loop(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _start(ids, tokens, places)
    for block in blocks:
        x = final_norm(_through(x, [block]))
    return readout(x)


def _normed_before_each_block(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _start(ids, tokens, places)
    for block in blocks:
        x = _through(final_norm(x), [block])
    return readout(final_norm(x))


def _normed_before_and_behind(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    x = _through(final_norm(_start(ids, tokens, places)), blocks)
    return readout(final_norm(x))


ASSEMBLY_MISTAKES = (
    Mistake(
        _without_mask,
        "Your tokens look ahead: without causal=True a block lets each token read the next one, "
        "which it is to tell.",
    ),
    Mistake(
        lambda ids, tokens, places, *rest: assembled(ids, tokens, 0 * places, *rest),
        "The model isn't told where its tokens stand: `places` is not used yet.",
    ),
    Mistake(
        lambda ids, tokens, places, *rest: assembled(ids, 0 * tokens, places, *rest),
        "The model knows where its tokens stand, but not which ones they are: look ids up in "
        "`tokens`.",
    ),
    Mistake(
        _multiplied,
        "You multiply a token's row by that of its place. They are added.",
    ),
    Mistake(
        _places_of_ids,
        "You looked places up by the tokens' ids. Token t of a text stands at place t, whatever "
        "its id is.",
    ),
    Mistake(
        lambda ids, tokens, places, *rest: assembled(
            ids, tokens * tokens.shape[1] ** 0.5, places, *rest
        ),
        "You multiply the tokens' rows by the root of d, as the first Transformer did. Here they "
        "are taken as they are.",
    ),
    Mistake(
        lambda ids, tokens, places, *rest: assembled(ids, tokens, places[-ids.shape[1] :], *rest),
        "You take the last T rows of `places`. A text begins at place 0.",
    ),
    Mistake(
        lambda ids, tokens, places, *rest: assembled(ids, tokens, places[1:], *rest),
        "Your first token stands at place 1. Places are counted from 0.",
    ),
    Mistake(
        lambda ids, tokens, places, *rest: assembled(
            ids, tokens, places[ids.shape[1]].expand_as(places), *rest
        ),
        "All your tokens stand at the same place: `places[T]` is one row. The first T rows are "
        "`places[:T]`.",
    ),
    Mistake(
        _places_in_every_block,
        "You add the positions before every block. They are added once, where the tokens come in; "
        "the skips carry them on.",
    ),
    Mistake(
        _added_again,
        "You add each block's output to its input. A block has done that itself: its skips are "
        "inside.",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, *rest: assembled(
            ids, tokens, places, blocks[-1:], *rest
        ),
        "This is what the last block alone makes of the embeddings. Each block must read what the "
        "block before it has returned.",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, *rest: assembled(
            ids, tokens, places, blocks[:1], *rest
        ),
        "Only the first block has run: does your function return within the loop?",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, *rest: assembled(ids, tokens, places, [], *rest),
        "No block has changed anything. Does your loop keep the rows that a block returns? `x` "
        "stays as it is until it is given a new value.",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, *rest: assembled(
            ids, tokens, places, blocks[::-1], *rest
        ),
        "The blocks run from the last to the first.",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, final_norm, readout: assembled(
            ids, tokens, places, blocks, lambda x: x, readout
        ),
        "The readout gets the bare sum. Pre-norm blocks leave it as it is, so `final_norm` comes "
        "between the last block and the readout.",
    ),
    Mistake(
        _normed_in_the_loop,
        "The final norm runs after every block. It comes once, when all blocks are done.",
    ),
    Mistake(
        _normed_before_each_block,
        "You normalize before every block. Pre-norm blocks do so inside, with norms of their own. "
        "`final_norm` comes once, when all blocks are done.",
    ),
    Mistake(
        _normed_before_and_behind,
        "`final_norm` runs twice: before the blocks, too. It comes once, behind the last one.",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, final_norm, readout: readout(
            _through(final_norm(_start(ids, tokens, places)), blocks)
        ),
        "Your norm stands before the blocks, as it does in microgpt. Here it comes after them.",
    ),
    Mistake(
        lambda *parts: assembled(*parts).softmax(-1),
        "These are probabilities. The logits were wanted, as the readout gives them.",
    ),
    Mistake(
        lambda *parts: assembled(*parts).log_softmax(-1),
        "These are logarithms of probabilities. The logits were wanted, as the readout gives them.",
    ),
    Mistake(
        lambda *parts: assembled(*parts)[:, -1],
        "You return the last token's logits. In training every token is asked: [B, T, V].",
    ),
    Mistake(
        lambda ids, tokens, places, blocks, final_norm, readout: assembled(
            ids, tokens, places, blocks, final_norm, lambda x: x @ tokens.T
        ),
        "You read out with the tokens' own table, as GPT-2 does. This model has a readout with "
        "weights of its own.",
    ),
)


def _cases() -> list[tuple[Tensor, Tensor, Tensor, list[TransformerBlock], LayerNorm, nn.Linear]]:
    """Return parts of two models, in which no two sizes agree."""
    cases = []
    for B, T, V, d, h, length, L in ((2, 5, 7, 6, 3, 9, 2), (3, 4, 10, 8, 2, 11, 3)):
        options: dict[str, Any] = {"dtype": torch.float64}
        blocks = [TransformerBlock(d, h, **options) for _ in range(L)]
        final_norm, readout = LayerNorm(d, **options), nn.Linear(d, V, bias=False, **options)
        for part in (*blocks, final_norm, readout):
            for parameter in part.parameters():  # also gains and biases, which begin at 1 and 0
                nn.init.normal_(parameter, std=0.7)
        tokens, places = (torch.randn(rows, d, **options) for rows in (V, length))
        ids = torch.randint(V, (B, T))
        ids[0, :2] = torch.tensor([V - 1, 0])  # no text in which each id is its place
        cases.append((ids, tokens, places, blocks, final_norm, readout))
    return cases


@exercise(mistakes=ASSEMBLY_MISTAKES)
def assembly(answer: Function) -> Verdict:
    """Check `my_gpt(ids, tokens, places, blocks, final_norm, readout)`: ids [B, T] -> [B, T, V].

    ids are below V, tokens [V, d] and places [length, d] are tables, blocks a list of
    `TransformerBlock`, final_norm and readout modules.
    """
    return check_function(
        answer,
        assembled,
        _cases(),
        ASSEMBLY_MISTAKES,
        output_names=["the logits"],
        praise="Two tables, a loop, a norm and a matrix: that is all of a GPT.",
    )
