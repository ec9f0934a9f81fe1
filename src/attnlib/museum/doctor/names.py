"""The names that public code has for the arguments and the parts of attention."""

import inspect
from collections.abc import Callable

ROLES: dict[str, tuple[str, ...]] = {
    "query": ("query", "queries", "q", "xq", "query_states", "x", "hidden_states", "inputs"),
    "key": ("key", "keys", "k", "xk", "key_states"),
    "value": ("value", "values", "v", "xv", "value_states"),
    "key_value": ("key_value", "kv", "context", "memory", "y", "encoder_output"),
    "mask": ("mask", "attn_mask", "attention_mask", "src_mask", "allowed"),
    "key_mask": ("key_mask", "key_padding_mask", "padding_mask", "pad_mask"),
    "causal": ("causal", "is_causal"),
    "cache": ("cache",),
    "need_weights": (
        "need_weights", "return_weights", "return_attention", "return_attn", "output_attentions",
    ),
    "average": ("average_attn_weights",),
}  # fmt: skip

SIZES: dict[str, tuple[str, ...]] = {
    "d_model": (
        "d_model", "embed_dim", "embed_size", "emb_size", "emb", "embedding_dim", "hidden_size",
        "hidden_dim", "dim", "n_embd", "d_in", "d_out", "dim_in", "dim_out", "model_dim",
        "dim_model", "n_state", "width",
    ),
    "num_heads": (
        "num_heads", "n_heads", "n_head", "h", "heads", "nhead", "nheads", "num_attention_heads",
        "head_num",
    ),
    "num_kv_heads": ("num_kv_heads", "n_kv_heads", "n_kv_head", "num_key_value_heads", "kv_heads"),
    "d_k": ("d_k", "d_v", "d_q", "head_dim", "dim_head", "d_head", "head_size"),
    "length": ("block_size", "context_length", "max_len", "max_length", "max_seq_len", "seq_len"),
    "dropout": (
        "dropout", "dropout_p", "dropout_rate", "p_dropout", "attn_dropout", "attn_drop",
        "attn_pdrop", "resid_pdrop", "attention_dropout", "p",
    ),
    "bias": ("bias", "qkv_bias", "use_bias", "attention_bias"),
    "config": ("config", "cfg", "args"),
}  # fmt: skip

PROJECTIONS: dict[str, tuple[str, ...]] = {
    "W_q": ("w_q", "wq", "q_proj", "q_linear", "query", "queries", "w_query", "q_lin", "q", "to_q",
            "query_proj", "linear_q", "fc_q", "w_qs", "toqueries", "tmp_q", "project_q"),
    "W_k": ("w_k", "wk", "k_proj", "k_linear", "key", "keys", "w_key", "k_lin", "k", "to_k",
            "key_proj", "linear_k", "fc_k", "w_ks", "tokeys", "project_k"),
    "W_v": ("w_v", "wv", "v_proj", "v_linear", "value", "values", "w_value", "v_lin", "v", "to_v",
            "value_proj", "linear_v", "fc_v", "w_vs", "tovalues", "project_v"),
    "W_o": ("w_o", "wo", "o_proj", "out_proj", "out", "to_out", "fc_out", "proj", "c_proj", "fc",
            "out_lin", "output", "dense", "projection", "linear_out", "unifyheads", "fc_o",
            "output_proj", "final_linear", "out_linear", "output_linear", "w_out", "w_concat",
            "linear"),
    "qkv": ("qkv", "c_attn", "in_proj", "wqkv", "w_qkv", "to_qkv", "qkv_proj", "query_key_value",
            "qkv_linear", "qkv_layer", "attn"),
    "kv": ("kv", "to_kv", "kv_proj", "wkv", "c_kv"),
}  # fmt: skip


def known_as(name: str, table: dict[str, tuple[str, ...]]) -> str | None:
    """Return what public code means by a name, or None."""
    plain = name.strip("_").lower()
    return next((role for role, names in table.items() if plain in names), None)


def parameters_of(function: Callable) -> list[inspect.Parameter]:
    """Return a function's named parameters, without *args and **kwargs."""
    hidden = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind not in hidden]


def takes_anything(function: Callable) -> bool:
    """Tell whether a function has **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
