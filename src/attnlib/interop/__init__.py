"""The attention of other libraries' models, and whole GPTs, as our own modules.

    >>> from torch import nn
    >>> from attnlib import interop
    >>> interop.from_torch(nn.MultiheadAttention(12, num_heads=4))
    MultiHeadAttention(
      d_model=12, num_heads=4
      ...

Most loaders return the attention of one layer, whose heads this package can show, mute and compare;
`gpt_from_gpt2` and `gpt_from_nanogpt` return whole models. Weights are always copied, so changes to
the new module leave the old one alone, and the new parameters can be trained.

What the libraries call things:

==================  ==========================  ========================================
here                GPT-2, nanoGPT              BERT
==================  ==========================  ========================================
W_q, W_k, W_v       ``c_attn``, side by side    ``self.query``, ``self.key``, ``self.value``
W_o                 ``c_proj``                  ``output.dense``
==================  ==========================  ========================================

For other libraries `from_projections` takes the four projections themselves. A source whose
attention does more than ours (rotary or relative positions, convolutions, ...) is refused, and so
are weights that are NaN or infinite. Nothing is downloaded. Reading a ``.safetensors`` file needs
the package safetensors.
"""

from attnlib.interop.gpts import gpt_from_gpt2, gpt_from_nanogpt
from attnlib.interop.projections import from_projections
from attnlib.interop.state_dicts import from_bert, from_gpt2, from_nanogpt, layers
from attnlib.interop.torch_module import from_torch

__all__ = [
    "from_bert",
    "from_gpt2",
    "from_nanogpt",
    "from_projections",
    "from_torch",
    "gpt_from_gpt2",
    "gpt_from_nanogpt",
    "layers",
]
