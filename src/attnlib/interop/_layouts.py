"""How other libraries name and store the attention of their layers."""

from typing import NamedTuple


class Layout(NamedTuple):
    """The names of one library."""

    library: str
    prefix: str  # of a layer's tensors; {} stands for the layer's number
    first: str  # a name that every layer has
    known: str  # pattern of all names of a layer that are read or may be ignored
    if_transposed: str = ""  # hint for errors if rows and columns are exchanged


_GPT2_NAMES = r"(c_attn|c_proj)\.(weight|bias)|bias|masked_bias"  # the last two are mask buffers

GPT2 = Layout(
    "GPT-2", "h.{}.attn.", "c_attn.weight", _GPT2_NAMES,
    "nanoGPT keeps it so: use from_nanogpt; so does GPTBigCode, but head by head, which no loader "
    "here reads",
)  # fmt: skip
NANOGPT = Layout(
    "nanoGPT", "h.{}.attn.", "c_attn.weight", _GPT2_NAMES, "GPT-2 keeps it so: use from_gpt2"
)
BERT = Layout(
    "BERT", "encoder.layer.{}.attention.", "self.query.weight",
    r"(self\.(query|key|value)|output\.dense)\.(weight|bias)"
    # The norm before or after, in the words of BERT, MegatronBERT and XLM-RoBERTa-XL.
    r"|((output\.)?LayerNorm|ln|self_attn_layer_norm)\.(weight|bias|gamma|beta)"
    # These are for LUKE's entities; its words look at words as BERT's do.
    r"|self\.(w2e|e2w|e2e)_query\.(weight|bias)",
)  # fmt: skip
