"""Attentions that `diagnose` was once wrong about, or of no help with, retold in short."""

import torch
from torch import nn

from tools.broken_attentions import Plain, fit
from tools.public_attentions import attend, in_heads, join


class ShowsItsPositions(Plain):
    """T5Attention: the biases of positions come before the weights."""

    def forward(self, x):
        output, weights = self.attend(x)
        return output, torch.zeros(1, *weights.shape[1:]), weights


class EinopsError(RuntimeError):
    """As einops raises it."""


class OfPatches(Plain):
    """Attention of MobileViT: tokens [B, p, n, d]."""

    def forward(self, x):
        if x.dim() != 4:
            raise EinopsError(
                'Error while processing rearrange-reduction pattern "b p n (h d) -> b p h n d".\n'
                f"Input tensor shape: {x.shape}. Wrong shape: expected 4 dims. Received 3-dim "
                "tensor."
            )
        return self.attend(x.flatten(0, 1))[0].view_as(x)


class WithoutABatch(Plain):
    """A student's: tokens [T, d]."""

    def forward(self, x):
        _, _ = x.shape  # else a ValueError
        output, weights = self.attend(x[None])
        return output[0], weights[0]


class JoinsBoth(Plain):
    """Attention of XCiT in vit-pytorch: keys of x and of the context."""

    def forward(self, x, context=None):
        return self.attend(x, x if context is None else torch.cat([x, context], 1))[0]


class ChannelAttention(Plain):
    """ChannelAttention of DaViT: channels look at channels."""

    def forward(self, x):
        q, k, v = (self.split(linear(x)) for linear in (self.W_q, self.W_k, self.W_v))
        weights = (q.mT @ k / self.d_k**0.5).softmax(-1)
        return self.W_o((v @ weights.mT).transpose(1, 2).flatten(2))


class HeadsOfItsOwn(nn.Module):
    """DetrSelfAttention: its own number of heads isn't that of its config, and isn't kept."""

    def __init__(self, config, hidden_size, num_attention_heads):
        super().__init__()
        self.config, self.head_dim = config, hidden_size // num_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(hidden_size, hidden_size) for _ in range(4)
        )

    def forward(self, x):
        q, k, v = (
            linear(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for linear in (self.q_proj, self.k_proj, self.v_proj)
        )
        heads, weights = attend(q, k, v)
        return self.o_proj(join(heads)), weights


class OfFactoryArguments(Plain):
    """Hands all further arguments on to its layers, which take no dropout."""

    def __init__(self, d_model, num_heads, **factory):
        super().__init__(d_model, num_heads)
        self.W_q = nn.Linear(d_model, d_model, **factory)

    def forward(self, query, key=None):
        """Values are made of the keys' tokens."""
        return self.attend(query, key)


class IgnoresItsValues(Plain):
    def forward(self, query, key=None, value=None):
        return self.attend(query, key, key)[0]


class AlwaysCausal(Plain):
    """minGPT, handed in with an argument that it ignores."""

    def forward(self, x, causal=False):
        return self.attend(x, allowed=fit(causal=True, T=x.shape[1]))[0]


class Transformed(nn.Module):
    """Layers called query_trans, keys_trans and value_trans."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query_trans, self.keys_trans, self.value_trans, self.proj = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def projected(self, x):
        return self.query_trans(x), self.keys_trans(x), self.value_trans(x)

    def forward(self, x):
        return self.proj(join(attend(*in_heads(self.num_heads, *self.projected(x)))[0]))


class TwoInOne(Transformed):
    """Attention of TNT and ConViT in timm: queries and keys made by one layer."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        del self.query_trans, self.keys_trans, self.value_trans
        self.qk, self.v = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def projected(self, x):
        return *self.qk(x).chunk(2, -1), self.v(x)
