"""Which model families come through, exactly, and which are refused, by their own names.

Every model is tiny, random and made by `transformers`, which looks up nothing anywhere. What its
own attention was given and gave is caught by hooks on the first and the last of its projections.
"""

import os
import re

import pytest
import torch
from torch import nn

from attnlib import MultiHeadAttention, interop

os.environ["HF_HUB_OFFLINE"] = "1"

# All sizes differ: B 2, T 7, h 4, d_k 6.
ENCODER = {
    "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 10,
    "vocab_size": 31, "max_position_embeddings": 40,
}  # fmt: skip
DECODER = {"n_embd": 24, "n_head": 4, "n_layer": 1, "vocab_size": 31, "n_positions": 17}
IDS = torch.randint(3, 31, (2, 7), generator=torch.Generator().manual_seed(0))
BOXES = {"bbox": torch.zeros(2, 7, 4, dtype=torch.long)}


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def made(transformers, name, model="Model", **sizes):
    """Return a family's model with all its numbers drawn at random."""
    torch.manual_seed(0)
    made = getattr(transformers, name + model)(getattr(transformers, name + "Config")(**sizes))
    with torch.no_grad():
        for parameter in made.parameters():
            nn.init.normal_(parameter, std=0.4)
    return made.eval()


@torch.no_grad()
def seen(model, first, last, **inputs):
    """Run a model; return what its projection `first` was given and what `last` gave."""
    caught = {}
    model.get_submodule(first).register_forward_hook(lambda _, x, __: caught.update(x=x[0]))
    model.get_submodule(last).register_forward_hook(lambda _, __, y: caught.update(y=y))
    model(**inputs)
    return caught["x"], caught["y"]


def prefix(model, end):
    """Return what stands before the only name of this end."""
    (name,) = [name for name in model.state_dict() if name.endswith(end)]
    return name.removesuffix(end)


# --- BERT's layout -------------------------------------------------------------------------------

LIKE_BERT = {
    "Bert": {}, "Roberta": {}, "Electra": {"embedding_size": 12}, "Camembert": {}, "XLMRoberta": {},
    "XLMRobertaXL": {}, "Ernie": {}, "MegatronBert": {}, "RemBert": {"input_embedding_size": 12},
    "BigBird": {"attention_type": "original_full"}, "LayoutLM": {}, "MarkupLM": {}, "Tapas": {},
    "Luke": {"entity_vocab_size": 5, "entity_emb_size": 7}, "Splinter": {}, "Data2VecText": {},
    "RoCBert": {"enable_pronunciation": False, "enable_shape": False},
    "Xmod": {"languages": ["en_XX"], "default_language": "en_XX"}, "ClapText": {},
    "ChineseCLIPText": {}, "RobertaPreLayerNorm": {},
}  # fmt: skip
MORE_INPUTS = {
    "LayoutLM": BOXES,
    "Tapas": {"token_type_ids": torch.zeros(2, 7, 7, dtype=torch.long)},
    "RoCBert": {"input_shape_ids": IDS, "input_pronunciation_ids": IDS},
}


@pytest.mark.parametrize("name", LIKE_BERT)
def test_like_bert(transformers, name):
    model = made(transformers, name, **ENCODER, **LIKE_BERT[name])
    attention = interop.from_bert(model.state_dict(), 0, num_heads=4)
    place = prefix(model, "attention.self.query.weight") + "attention."
    inputs = {"input_ids": IDS} | MORE_INPUTS.get(name, {})
    x, theirs = seen(model, f"{place}self.query", f"{place}output.dense", **inputs)
    torch.testing.assert_close(attention(x)[0], theirs, atol=1e-5, rtol=1e-5)


ESM = {"position_embedding_type": "rotary", "pad_token_id": 1, "mask_token_id": 2}
MORE_THAN_BERT = {  # what each is known by
    "Esm": (ESM, "rotary_embeddings.inv_freq"),
    "RoFormer": ({"embedding_size": 24}, "encoder.embed_positions.weight"),
    "LayoutLMv3": ({}, "encoder.rel_pos_bias.weight"),
    "Longformer": ({"attention_window": 4}, "self.query_global.weight"),
    "Nystromformer": ({}, "self.conv.weight"),
    "Yoso": ({"conv_window": 3}, "self.conv.weight"),
    "Canine": ({}, "initial_char_encoder.layer.0.attention.self.query.weight"),
    "ConvBert": ({"embedding_size": 24, "head_ratio": 1}, "self.key_conv_attn_layer"),
    "Lilt": ({}, "self.layout_query.weight"),
    "Bros": ({}, "bbox_embeddings"),
    "IBert": ({}, "self.query.weight_integer"),
}


@pytest.mark.parametrize("name", MORE_THAN_BERT)
def test_more_than_bert(transformers, name):
    options, found = MORE_THAN_BERT[name]
    state = made(transformers, name, **ENCODER, **options).state_dict()
    with pytest.raises(ValueError, match=r"no other part, got also \[.*" + re.escape(found)):
        interop.from_bert(state, 0, num_heads=4)


@pytest.mark.parametrize("name", ["Esm", "RoFormer", "Canine"])
def test_more_than_bert_within_a_larger_model(transformers, name):
    state = made(transformers, name, **ENCODER, **MORE_THAN_BERT[name][0]).state_dict()
    state = {f"tower.encoder.{name}": tensor for name, tensor in state.items()}
    with pytest.raises(ValueError, match="no other part"):
        interop.from_bert(state, 0, num_heads=4)


@pytest.mark.parametrize("name", ["Esm", "RoFormer"])
def test_positions_must_come_in_with_the_words(transformers, name):
    """Whether a library saves the numbers by which it turns queries and keys changes by version."""
    state = made(transformers, name, **ENCODER, **MORE_THAN_BERT[name][0]).state_dict()
    del state[MORE_THAN_BERT[name][1]]
    with pytest.raises(ValueError, match=r"without 'embeddings\.position_embeddings\.weight'"):
        interop.from_bert(state, 0, num_heads=4)


def test_a_saved_esm_is_refused(transformers, tmp_path):
    made(transformers, "Esm", **ENCODER, **ESM).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="absolute positions"):
        interop.from_bert(tmp_path / "model.safetensors", 0, num_heads=4)


@pytest.mark.parametrize("name", ["Yoso", "Mra"])
def test_a_saved_lookalike_says_its_family(transformers, name, tmp_path):
    """Its tensors have BERT's names, letter by letter; the file beside them tells."""
    made(transformers, name, **ENCODER).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match=f"got {name.lower()}'s"):
        interop.from_bert(file, 0, num_heads=4)
    for config in (
        "not JSON",
        "[]",
        "{}",
        '{"model_type": []}',
    ):  # which is no error of the weights
        (tmp_path / "config.json").write_text(config)
        interop.from_bert(file, 0, num_heads=4)


@pytest.mark.parametrize("name", ["Yoso", "Mra"])
def test_lookalikes_within_their_task(transformers, name):
    state = made(transformers, name, "ForMaskedLM", **ENCODER).state_dict()
    with pytest.raises(ValueError, match=f"got {name.lower()}'s"):
        interop.from_bert(state, 0, num_heads=4)


def test_another_tower_may_have_relative_positions(transformers):
    """CLAP hears with relative positions, and reads without."""
    model = made(transformers, "ClapText", **ENCODER)
    state = {f"text_model.{name}": tensor for name, tensor in model.state_dict().items()}
    heard = "audio_model.layers.0.blocks.0.attention.self.relative_position_bias_table"
    interop.from_bert(state | {heard: torch.ones(9, 4)}, 0, num_heads=4)


def test_positions_above_the_model(transformers):
    model = made(transformers, "Bert", **ENCODER)
    state = {f"model.bert.{name}": tensor for name, tensor in model.state_dict().items()}
    interop.from_bert(state, 0, num_heads=4)
    with pytest.raises(ValueError, match=r"got also \['model\.rotary\.inv_freq'\]"):
        interop.from_bert(state | {"model.rotary.inv_freq": torch.ones(3)}, 0, num_heads=4)


# --- GPT-2's layout ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GPT2", "ImageGPT", "OpenAIGPT"])
def test_like_gpt2(transformers, name):
    model = made(transformers, name, **DECODER)
    attention = interop.from_gpt2(model.state_dict(), 0, num_heads=4)
    x, theirs = seen(model, "h.0.attn.c_attn", "h.0.attn.c_proj", input_ids=IDS)
    ours, _ = attention(x, causal=True)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_gptbigcode_is_sent_nowhere(transformers, tmp_path):
    """Its names and shapes are nanoGPT's; its columns lie head by head."""
    model = made(transformers, "GPTBigCode", **DECODER, multi_query=False)
    with pytest.raises(ValueError, match="GPTBigCode, but head by head, which no loader"):
        interop.from_gpt2(model.state_dict(), 0, num_heads=4)
    model.save_pretrained(tmp_path)
    for load in (interop.from_gpt2, interop.from_nanogpt):
        with pytest.raises(ValueError, match="got gpt_bigcode's"):
            load(tmp_path / "model.safetensors", 0, num_heads=4)


@pytest.mark.parametrize("option", ["scale_attn_weights", "scale_attn_by_inverse_layer_idx"])
def test_a_saved_gpt2_says_its_scale(transformers, option, tmp_path):
    model = made(transformers, "GPT2", **DECODER, **{option: option.endswith("idx")})
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"the config.json beside it says {option}="):
        interop.from_gpt2(tmp_path / "model.safetensors", 0, num_heads=4)


@pytest.mark.parametrize("part", ["attn.rotary.inv_freq", "attn.q_norm.weight", "attn.rel_pos"])
def test_more_than_gpt2(part):
    shapes = {"c_attn.weight": (24, 8), "c_proj.weight": (8, 8)}
    state = {f"transformer.h.0.attn.{name}": torch.ones(shape) for name, shape in shapes.items()}
    interop.from_nanogpt(state, 0, num_heads=2)
    for name in (f"transformer.h.0.{part}", "transformer.rotary_emb.inv_freq"):
        with pytest.raises(ValueError, match=re.escape(f"got also ['{name}']")):
            interop.from_nanogpt(state | {name: torch.ones(4)}, 0, num_heads=2)


# --- layouts that no loader knows ----------------------------------------------------------------

LLAMA = {
    "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 1,
    "intermediate_size": 10, "vocab_size": 31,
}  # fmt: skip
UNKNOWN = {
    "T5": {"d_model": 24, "d_kv": 6, "num_heads": 4, "num_layers": 1, "d_ff": 10, "vocab_size": 31},
    "OPT": {"word_embed_proj_dim": 24, "ffn_dim": 10}, "GPTNeoX": {}, "Llama": LLAMA,
    "Qwen2": LLAMA, "Albert": {"embedding_size": 12}, "DebertaV2": {}, "MPNet": {},
    "GPTNeo": {"num_layers": 1, "num_heads": 4, "attention_types": [[["global"], 1]]},
    "DistilBert": {"dim": 24, "n_heads": 4, "n_layers": 1, "hidden_dim": 10},
    "ViT": {"image_size": 8, "patch_size": 4}, "CLIPText": {},
    "Beit": {"image_size": 8, "patch_size": 4},
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_layouts_are_refused(transformers, name):
    sizes = {} if name in ("T5", "DistilBert") else ENCODER
    state = made(transformers, name, **sizes | UNKNOWN[name]).state_dict()
    for load in (interop.from_bert, interop.from_gpt2, interop.from_nanogpt):
        with pytest.raises(ValueError, match="source must hold"):
            load(state, 0, num_heads=4)


# --- four projections ----------------------------------------------------------------------------

WHISPER = {
    "d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 10, "decoder_ffn_dim": 10, "pad_token_id": 1,
}  # fmt: skip
HEARD = {
    "input_features": torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0)),
    "decoder_input_ids": IDS,
}
IMAGES = {"pixel_values": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))}
WORDS = {"input_ids": IDS}
PROJ = ("q_proj", "k_proj", "v_proj", "out_proj")
BY_PROJECTIONS = {
    "DistilBERT": ("DistilBert", UNKNOWN["DistilBert"], WORDS, "transformer.layer.0.attention",
        ("q_lin", "k_lin", "v_lin", "out_lin")),
    "ViT": ("ViT", ENCODER | UNKNOWN["ViT"], IMAGES, "layers.0.attention", (*PROJ[:3], "o_proj")),
    "CLIP": ("CLIPText", ENCODER, WORDS, "encoder.layers.0.self_attn", PROJ),
    "OPT": ("OPT", ENCODER | UNKNOWN["OPT"], WORDS, "decoder.layers.0.self_attn", PROJ),
    "BART": ("Bart", WHISPER | {"vocab_size": 31}, WORDS, "encoder.layers.0.self_attn", PROJ),
    "Whisper": ("Whisper", WHISPER | {"vocab_size": 31, "num_mel_bins": 5,
        "max_source_positions": 6, "decoder_start_token_id": 2},
        HEARD, "encoder.layers.0.self_attn", PROJ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_PROJECTIONS)
def test_layers_of_transformers(transformers, name):
    family, sizes, inputs, place, names = BY_PROJECTIONS[name]
    model = made(transformers, family, **sizes)
    layer = model.get_submodule(place)
    attention = interop.from_projections(*[layer.get_submodule(n) for n in names], num_heads=4)
    x, theirs = seen(model, f"{place}.{names[0]}", f"{place}.{names[3]}", **inputs)
    ours, _ = attention(x, causal=name in ("CLIP", "OPT"))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert type(attention) is MultiHeadAttention


def test_conv1d_of_transformers(transformers):
    model = made(transformers, "GPT2", **DECODER)
    attention = interop.from_gpt2(model.state_dict(), 0, num_heads=4)
    linear = [attention.W_q, attention.W_k, attention.W_v]
    ours = interop.from_projections(*linear, model.h[0].attn.c_proj, num_heads=4)
    x = torch.randn(2, 5, 24)
    assert torch.equal(ours(x)[0], attention(x)[0])
