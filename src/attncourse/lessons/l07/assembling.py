"""A GPT put together from its parts: tables, blocks, a norm, a readout."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.checking import CheckResult, check_function, exercise
from attnlib.blocks import TransformerBlock
from attnlib.norms import LayerNorm

Blocks = Sequence[TransformerBlock]
Part = Callable[[Tensor], Tensor]
Function = Callable[[Tensor, Tensor, Tensor, Blocks, Part, Part], Tensor]


def _start(ids: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    return tokens[ids] + places[: ids.shape[1]]  # [B, T] -> [B, T, d]


def _run(block: TransformerBlock, x: Tensor) -> Tensor:
    return block(x, causal=True)[0]


def _through(x: Tensor, blocks: Blocks, step: Callable[..., Tensor] = _run) -> Tensor:
    for block in blocks:
        x = step(block, x)
    return x


def assembled(
    ids: Tensor, tokens: Tensor, places: Tensor, blocks: Blocks, final_norm: Part, readout: Part
) -> Tensor:
    """Return logits [B, T, V] of ids [B, T]."""
    return readout(final_norm(_through(_start(ids, tokens, places), blocks)))


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


@exercise()
def assembly(answer: Function) -> CheckResult:
    """Check `my_gpt(ids, tokens, places, blocks, final_norm, readout)`: ids [B, T] -> [B, T, V].

    ids are below V, tokens [V, d] and places [length, d] are tables, blocks a list of
    `TransformerBlock`, final_norm and readout modules.
    """
    praise = "Two tables, a loop, a norm and a matrix: that is all of a GPT."
    return check_function(
        answer, assembled, _cases(), assembly.mistakes, output_names=["the logits"], praise=praise
    )
