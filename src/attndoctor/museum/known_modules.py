"""Two layers that many people know, retold: the museum's page diagnoses them."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    """The attention of nanoGPT (Karpathy, github.com/karpathy/nanoGPT, model.py)."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head, self.n_embd, self.dropout = config.n_head, config.n_embd, config.dropout

    def forward(self, x: Tensor) -> Tensor:
        """Let each token look at itself and to the left."""
        B, T, C = x.shape
        q, k, v = (
            one.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for one in self.c_attn(x).split(self.n_embd, dim=2)
        )
        y = self.attend(q, k, v).transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend by the fused kernel."""
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)


class MultiHeadedAttention(nn.Module):
    """The attention of The Annotated Transformer (Rush et al. 2018, nlp.seas.harvard.edu)."""

    def __init__(self, h: int, d_model: int, dropout: float = 0.1) -> None:
        super().__init__()
        assert d_model % h == 0
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
        self.attn: Tensor | None = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attend; the mask is [B, T, T], and 0 hides."""
        B = len(query)
        q, k, v = (
            linear(x).view(B, -1, self.h, self.d_k).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        self.attn = self.dropout(scores.softmax(dim=-1))
        x = torch.matmul(self.attn, v).transpose(1, 2).contiguous().view(B, -1, self.h * self.d_k)
        return self.linears[-1](x)
