"""nanoGPT written out with its names: transformer.wte, wpe, h, ln_f and a tied lm_head."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def randomize(model):
    """Draw all parameters anew: biases aren't 0, gains aren't 1, heads have opinions."""
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4)
    return model.eval()


class NanoNorm(nn.Module):
    def __init__(self, d, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class NanoAttention(nn.Module):
    """Its attention, with the mask buffer that it makes where flash is missing."""

    def __init__(self, d, h, bias):
        super().__init__()
        self.h, self.d = h, d
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d, bias=bias), nn.Linear(d, d, bias=bias)
        self.register_buffer("bias", torch.ones(17, 17).tril().view(1, 1, 17, 17))

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (
            part.view(B, T, self.h, d // self.h).transpose(1, 2)
            for part in self.c_attn(x).split(self.d, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        weights = scores.masked_fill(self.bias[:, :, :T, :T] == 0, -math.inf).softmax(-1)
        y = (weights @ v).transpose(1, 2).contiguous().view(B, T, d)
        return self.c_proj(y), weights


class NanoBlock(nn.Module):
    def __init__(self, d, h, bias):
        super().__init__()
        self.ln_1, self.ln_2 = NanoNorm(d, bias), NanoNorm(d, bias)
        self.attn = NanoAttention(d, h, bias)
        c_fc, c_proj = nn.Linear(d, 4 * d, bias=bias), nn.Linear(4 * d, d, bias=bias)
        self.mlp = nn.ModuleDict({"c_fc": c_fc, "c_proj": c_proj})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))[0]
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x))))


class NanoGPT(nn.Module):
    def __init__(self, bias, V=31, length=17, d=24, h=4, layers=2):
        super().__init__()
        blocks = nn.ModuleList([NanoBlock(d, h, bias) for _ in range(layers)])
        parts = {"wte": nn.Embedding(V, d), "wpe": nn.Embedding(length, d), "h": blocks}
        self.transformer = nn.ModuleDict(parts | {"ln_f": NanoNorm(d, bias)})
        self.lm_head = nn.Linear(d, V, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, tokens):
        x = self.transformer["wte"](tokens) + self.transformer["wpe"].weight[: tokens.shape[1]]
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))
