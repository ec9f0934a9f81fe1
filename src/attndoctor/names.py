"""The names that public code gives to the arguments, sizes and layers of attention."""

import inspect
import re
from collections.abc import Callable


def _table(words: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(names.split()) for key, names in words.items()}


ROLES = _table({
    "query": "query queries q xq query_states x hidden_states inputs inputs_q x_q q_x tgt trg",
    "key": "key keys k xk key_states",
    "value": "value values v xv value_states",
    "key_value": """
        key_value kv context memory y encoder_output enc_output cond xa inputs_kv xkv x_kv kv_x
        encoder_hidden_states key_value_states encoder_out encoder_outputs enc_src src ctx""",
    "mask": "mask attn_mask attention_mask src_mask tgt_mask trg_mask allowed",
    "key_mask": """
        key_mask key_padding_mask padding_mask pad_mask src_key_padding_mask
        tgt_key_padding_mask""",
    "mask_between": "memory_mask cross_attn_mask",
    "key_mask_between": """
        memory_key_padding_mask context_mask context_key_padding_mask memory_padding_mask
        encoder_attention_mask""",
    "causal": "causal is_causal",
    "cache": "cache",
    "need_weights": "need_weights return_weights return_attention return_attn output_attentions",
    "average": "average_attn_weights",
    "no_turn": "position_embeddings",
    "past": "past layer_past past_kv past_key_value past_key_values kv_cache",
    "keeps_past": "use_cache",
})  # fmt: skip

SIZES = _table({
    "d_model": """
        d_model embed_dim embed_size emb_size emb embedding_dim hidden_size hidden_dim dim
        n_embd d_in d_out dim_in dim_out model_dim dim_model n_state width model_dimension
        query_dim context_dim d_cond n_feat in_features input_dim output_dim in_dim out_dim
        channels in_channels out_channels n_channels size num_units n_units d_emb d_embed
        emb_dim embedding_size hid_dim num_hiddens""",
    "num_heads": """
        num_heads n_heads n_head h heads nhead nheads num_attention_heads head_num num_head
        number_of_heads heads_count head_count n_attention_heads num_attn_heads""",
    "num_kv_heads": """
        num_kv_heads n_kv_heads n_kv_head num_key_value_heads kv_heads n_query_groups
        num_query_groups n_head_kv num_heads_kv""",
    "d_k": """
        d_k d_v d_q head_dim dim_head d_head head_size head_dimension d_keys d_values d_queries
        d_key d_value d_query key_dim value_dim""",
    "length": """
        block_size context_length max_len max_length max_seq_len seq_len n_ctx n_positions
        max_position_embeddings max_seq_length max_sequence_length""",
    "dropout": """
        dropout dropout_p dropout_rate p_dropout attn_dropout attn_drop attn_pdrop resid_pdrop
        attention_dropout p dropout_prob drop_prob dropout_probability drop_rate p_drop""",
    "bias": "bias qkv_bias use_bias attention_bias",
    "config": "config cfg args",
    "layer": "layer_idx layer_id layer_index layer_number",
    "device": "device",
})  # fmt: skip

# Words in a layer's name that leave open which projection it is.
_PLAIN = tuple(
    """
    w fc lin linear linears proj projection projections project dense layer layers attn attention
    net nets conv weight weights matrix matrices mat transform trans transformation kernel param
    parameter
""".split()
)
_BIAS = ("b", "bias", "biases")
_BESIDE = (*_PLAIN, "c", "to", "cast", "tmp", "embeddings", "x", "input", "self", "multi", "head")
OF_EITHER_KIND = ("encoder_hidden_states", "key_value_states")  # in transformers
SCALES = ("scaling", "scale", "softmax_scale", "sm_scale", "norm_factor")  # attributes
CAUSAL_FLAGS = ("causal", "is_causal", "masked", "mask_flag", "is_decoder")  # attributes
PLAIN = "plain"  # the role of a layer whose name leaves its projection open
PROJECTIONS = _table({
    "W_q": "q query queries querys qs wq toqueries",
    "W_k": "k key keys ks wk tokeys",
    "W_v": "v value values vs wv tovalues",
    "W_o": "o out output final unify unifyheads concat combine wo",
    "qkv": "in",
})  # fmt: skip
_SEVERAL = (["k", "q", "v"], ["k", "v"], ["k", "q"])  # letters of projections in one parameter
_OF_ONE = {"W_q": "q", "W_k": "k", "W_v": "v"}


def projection_named(name: str) -> str | None:
    """Return the projection that a layer is named for: `PLAIN` of "proj", "kv" of two in one."""
    return _named([word for word in words_of(name) if word not in _BESIDE], words_of(name))


def bias_named(name: str) -> str | None:
    """Return the projection whose bias a parameter is named for, or None."""
    words = words_of(name)
    if len(words) == 1:  # bq
        words = ["b", words[0].removeprefix("b")] if words[0].startswith("b") else words
    rest = [word for word in words if word not in (*_BIAS, *_BESIDE)]
    return _named(rest, []) if set(words) & set(_BIAS) else None


def _named(words: list[str], all_words: list[str]) -> str | None:
    found = list(dict.fromkeys(_projection(word) for word in words))
    letters = "".join(_OF_ONE.get(role or "", " ") for role in found)
    if sorted(letters) in _SEVERAL:
        return letters
    if not found and set(all_words) & set(_PLAIN):
        return PLAIN
    return found[0] if len(found) == 1 else None


def _projection(word: str) -> str | None:
    letters = word.removeprefix("w")
    if sorted(letters) in _SEVERAL:
        return letters
    return known_as(word, PROJECTIONS)


def words_of(name: str) -> list[str]:
    """Split a name into words, at capitals, dots and underscores."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def known_as(name: str, table: dict[str, tuple[str, ...]]) -> str | None:
    """Return the key of the table that has this name, or None."""
    plain = name.strip("_").lower()
    return next((role for role, names in table.items() if plain in names), None)


def parameters_of(function: Callable) -> list[inspect.Parameter]:
    """Return a function's named parameters, without *args and **kwargs."""
    hidden = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind not in hidden]


def takes_anything(function: Callable) -> bool:
    """Return whether a function has **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
