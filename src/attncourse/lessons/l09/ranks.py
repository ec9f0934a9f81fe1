"""The rank of a head's scores, whatever tokens come."""

import torch
from torch import Tensor, nn

from attncourse.checking import CheckResult, check_function, exercise
from attnlib.attention import MultiHeadAttention


def _parts(module: MultiHeadAttention, head: int) -> tuple[Tensor, Tensor]:
    """Return a head's W_q and W_k, as x @ W has them: [d, d_k] each."""
    d_k = module.d_model // module.num_heads
    rows = slice(head * d_k, (head + 1) * d_k)
    return module.W_q.weight[rows].T, module.W_k.weight[rows].T


def _rank(matrix: Tensor) -> int:
    return int(torch.linalg.matrix_rank(matrix.detach(), rtol=1e-4))


def score_rank(module: MultiHeadAttention, head: int) -> int:
    """Return the rank of W_q W_k^T of one head, [d, d]."""
    W_q, W_k = _parts(module, head)
    return _rank(W_q @ W_k.T)


def _low(d: int, d_k: int, rank: int) -> Tensor:
    """Return a matrix [d, d_k] of this rank, by any tolerance: nothing is rounded, or nearly 0."""
    left, mixed = (8 * torch.randn(d, d_k)).round().split([rank, d_k - rank], dim=1)
    return torch.cat([left, left @ mixed[:rank].sign()], dim=1) / 8


def _set_head(projection: nn.Linear, head: int, W: Tensor) -> None:
    """Give a projection a head's W [d, d_k]."""
    d_k = W.shape[1]
    with torch.no_grad():
        projection.weight[head * d_k : (head + 1) * d_k] = W.T


def _cases() -> list[tuple[MultiHeadAttention, int]]:
    """Return heads of fewer directions than d_k, of full rank, and of queries and keys apart."""
    cases = []
    for h, d_k, head, rank_q, rank_k in ((3, 6, 1, 3, 2), (2, 5, 1, 5, 5), (4, 3, 2, 1, 3)):
        module, d = MultiHeadAttention(h * d_k, h, bias=False), h * d_k
        for projection, rank in ((module.W_q, rank_q), (module.W_k, rank_k)):
            nn.init.normal_(projection.weight)
            with torch.no_grad():
                projection.weight[:, head * d_k : (head + 1) * d_k] = _low(d, d_k, 1)
            _set_head(projection, head - 1, _low(d, d_k, 1))
            _set_head(projection, head, _low(d, d_k, rank) / 8)
        cases.append((module, head))
    apart = MultiHeadAttention(12, 6, bias=False)
    upper, lower = torch.randn(2, 12, 2)
    upper[6:], lower[:6] = 0, 0
    _set_head(apart.W_q, 4, upper)
    _set_head(apart.W_k, 4, lower)
    crossed = MultiHeadAttention(9, 3, bias=False)  # less than either matrix alone has
    _set_head(crossed.W_q, 1, torch.eye(9)[:, :3] * torch.tensor([0.0, 1.0, 2.0]))
    _set_head(crossed.W_k, 1, torch.eye(9)[:, 4:7] * torch.tensor([1.0, 3.0, 0.0]))
    return [*cases, (apart, 4), (crossed, 1)]


@exercise()
def head_rank(answer: object) -> CheckResult:
    """Check `head_rank(module, head)`: the rank of W_q W_k^T of a MultiHeadAttention's head."""
    praise = "However many tokens come, a head's scores, [T, T], have no larger rank than that."
    return check_function(
        answer, score_rank, _cases(), head_rank.mistakes, output_names=["the rank"], praise=praise
    )
