"""Which model families come through, exactly, and which are refused, by their own names.

Every model is tiny, random and made by `transformers`, which looks up nothing anywhere. What its
own attention was given and gave is caught by hooks on the first and the last of its projections.
"""

import copy
import os
import re
from functools import partial

import pytest
import torch
from tools.modules import randomize

from attnlib import MultiHeadAttention, interop

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")

# All sizes differ: B 2, T 7, h 4, d_k 6.
ENCODER = {
    "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 10,
    "vocab_size": 31, "max_position_embeddings": 40,
}  # fmt: skip
DECODER = {"n_embd": 24, "n_head": 4, "n_layer": 2, "vocab_size": 31, "n_positions": 17}
IDS = torch.randint(3, 31, (2, 7), generator=torch.Generator().manual_seed(0))
WORDS, IMAGES = {"input_ids": IDS}, {"pixel_values": torch.linspace(-1, 1, 384).view(2, 3, 8, 8)}


def made(name, model="Model", **sizes):
    """Return a family's model with all its numbers drawn at random."""
    torch.manual_seed(0)
    config = getattr(transformers, name + "Config")(**sizes)
    return randomize(getattr(transformers, name + model)(config))


LIKE_BERT = {  # what each needs beside a BERT's sizes and words
    "Bert": {}, "Roberta": {}, "Electra": {"embedding_size": 12}, "XLMRobertaXL": {},
    "MegatronBert": {}, "BigBird": {"attention_type": "original_full"}, "RobertaPreLayerNorm": {},
}  # fmt: skip
DISTIL = {"dim": 24, "n_heads": 4, "n_layers": 2, "hidden_dim": 10}
VIT = ENCODER | {"image_size": 8, "patch_size": 4}
OPT = ENCODER | {"word_embed_proj_dim": 24, "ffn_dim": 10}
BART = {
    "d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 10, "decoder_ffn_dim": 10, "pad_token_id": 1,
    "vocab_size": 31,
}  # fmt: skip
WHISPER = BART | {"num_mel_bins": 5, "max_source_positions": 6, "decoder_start_token_id": 2}
HEARD = {"input_features": torch.linspace(-1, 1, 120).view(2, 5, 12), "decoder_input_ids": IDS}
SELF = ("self.query", "self.key", "self.value", "output.dense")
PROJ = ("q_proj", "k_proj", "v_proj", "out_proj")
LIN = ("q_lin", "k_lin", "v_lin", "out_lin")
FAMILIES = {  # the loader, all sizes, what it reads, the layer's place, its projections
    **{name: ("from_bert", ENCODER | more, WORDS, "encoder.layer.1.attention", SELF)
        for name, more in LIKE_BERT.items()},
    **{name: ("from_gpt2", DECODER, WORDS, "h.1.attn", ("c_attn", "c_proj"))
        for name in ("GPT2", "ImageGPT", "OpenAIGPT")},
    "DistilBert": ("", DISTIL, WORDS, "transformer.layer.0.attention", LIN),
    "ViT": ("", VIT, IMAGES, "layers.0.attention", (*PROJ[:3], "o_proj")),
    "CLIPText": ("", ENCODER, WORDS, "encoder.layers.0.self_attn", PROJ),
    "OPT": ("", OPT, WORDS, "decoder.layers.0.self_attn", PROJ),
    "Bart": ("", BART, WORDS, "encoder.layers.0.self_attn", PROJ),
    "Whisper": ("", WHISPER, HEARD, "encoder.layers.0.self_attn", PROJ),
}  # fmt: skip
CAUSAL = ("GPT2", "ImageGPT", "OpenAIGPT", "CLIPText", "OPT")


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs_and_gradients_are_the_library_s_own(name):
    loader, sizes, inputs, place, names = FAMILIES[name]
    model = made(name, **sizes)
    (place,) = {
        found.removesuffix(f".{names[0]}")
        for found, _ in model.named_modules()
        if found.endswith(f"{place}.{names[0]}")
    }
    projections = [model.get_submodule(f"{place}.{projection}") for projection in names]
    seen, untouched = {}, copy.deepcopy(projections)
    projections[0].register_forward_hook(lambda _, x, __: seen.update(x=x[0]))
    projections[-1].register_forward_hook(lambda _, __, y: seen.update(y=y))
    model(**inputs)
    if loader:
        assert interop.layers(model.state_dict()) == [0, 1]
        attention = getattr(interop, loader)(model.state_dict(), 1, num_heads=4)
    else:
        attention = interop.from_projections(*untouched, num_heads=4)
    assert type(attention) is MultiHeadAttention
    x = seen["x"].detach().requires_grad_()
    output, _ = attention(x, causal=name in CAUSAL)
    torch.testing.assert_close(output, seen["y"], atol=1e-5, rtol=1e-5)
    ways = torch.randn_like(output)
    (ours,) = torch.autograd.grad((output * ways).sum(), x)
    (theirs,) = torch.autograd.grad((seen["y"] * ways).sum(), seen["x"])
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


ESM = {"position_embedding_type": "rotary", "pad_token_id": 1, "mask_token_id": 2}
MORE_THAN_BERT = {  # what each is known by
    "Esm": (ESM, "rotary_embeddings.inv_freq"),
    "RoFormer": ({"embedding_size": 24}, "encoder.embed_positions.weight"),
    "LayoutLMv3": ({}, "encoder.rel_pos_bias.weight"),
    "Longformer": ({"attention_window": 4}, "self.query_global.weight"),
    "Canine": ({}, "initial_char_encoder.layer.0.attention.self.query.weight"),
    "IBert": ({}, "self.query.weight_integer"),
}


@pytest.mark.parametrize("name", MORE_THAN_BERT)
def test_more_than_bert(name):
    options, found = MORE_THAN_BERT[name]
    state = made(name, **ENCODER, **options).state_dict()
    with pytest.raises(ValueError, match=r"no other part, got also \[.*" + re.escape(found)):
        interop.from_bert(state, 0, num_heads=4)
    if name in ("Esm", "RoFormer", "Canine"):  # within a larger model, too
        larger = {f"tower.encoder.{name}": tensor for name, tensor in state.items()}
        with pytest.raises(ValueError, match="no other part"):
            interop.from_bert(larger, 0, num_heads=4)
    if name in ("Esm", "RoFormer"):  # some versions don't save the numbers by which they turn
        del state[found]
        with pytest.raises(ValueError, match=r"without 'embeddings\.position_embeddings"):
            interop.from_bert(state, 0, num_heads=4)


@pytest.mark.parametrize("name", ["Yoso", "Mra"])
def test_a_saved_lookalike_says_its_family(name, tmp_path):
    """Its tensors have BERT's names, letter by letter; the file beside them tells."""
    made(name, **ENCODER).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    state = made(name, "ForMaskedLM", **ENCODER).state_dict()  # whose readout tells, too
    for source in (file, state):
        with pytest.raises(ValueError, match=f"got {name.lower()}'s"):
            interop.from_bert(source, 0, num_heads=4)
    bare = made(name, **ENCODER).state_dict()
    with pytest.raises(ValueError, match=f"got {name.lower()}'s"):
        interop.from_bert(bare, 0, num_heads=4, family=name.lower())
    with pytest.warns(UserWarning, match=f"{name.lower()}.* family="):
        interop.from_bert(bare, 0, num_heads=4)
    for config in ("not JSON", "[]", "{}", '{"model_type": []}'):  # no error of the weights
        (tmp_path / "config.json").write_text(config)
        interop.from_bert(file, 0, num_heads=4)


def test_positions_of_the_model_count_and_those_of_another_tower_do_not():
    """CLAP hears with relative positions, and reads without."""
    state = {
        f"model.bert.{k}": tensor for k, tensor in made("Bert", **ENCODER).state_dict().items()
    }
    heard = "audio_model.layers.0.blocks.0.attention.self.relative_position_bias_table"
    interop.from_bert(state | {heard: torch.ones(9, 4)}, 0, num_heads=4)
    with pytest.raises(ValueError, match=r"got also \['model\.rotary\.inv_freq'\]"):
        interop.from_bert(state | {"model.rotary.inv_freq": torch.ones(3)}, 0, num_heads=4)


def test_gptbigcode_is_sent_nowhere_and_known_families_are_loaded_in_silence(tmp_path, recwarn):
    """GPTBigCode's names and shapes are nanoGPT's; its columns lie head by head."""
    interop.from_bert(made("Bert", **ENCODER).state_dict(), 0, num_heads=4, family="bert")
    interop.from_gpt2(made("GPT2", **DECODER).state_dict(), 0, num_heads=4)  # its shapes tell
    assert not recwarn.list
    model = made("GPTBigCode", **DECODER, multi_query=False)
    with pytest.raises(ValueError, match="GPTBigCode, but head by head"):
        interop.from_gpt2(model.state_dict(), 0, num_heads=4)
    model.save_pretrained(tmp_path)
    for load in (interop.from_gpt2, interop.from_nanogpt):
        with pytest.raises(ValueError, match="got gpt_bigcode's"):
            load(tmp_path / "model.safetensors", 0, num_heads=4)
    for load in (partial(interop.from_nanogpt, layer=0), interop.gpt_from_nanogpt):
        with pytest.raises(ValueError, match="got gpt_bigcode's"):
            load(model.state_dict(), num_heads=4, family=model.config.model_type)
        with pytest.warns(UserWarning, match=r"gpt_bigcode.* family="):
            load(model.state_dict(), num_heads=4)


@pytest.mark.parametrize("option", ["scale_attn_weights", "scale_attn_by_inverse_layer_idx"])
def test_a_saved_gpt2_says_its_scale(option, tmp_path):
    model = made("GPT2", **DECODER, **{option: option.endswith("idx")})
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"config.json .*{option}="):
        interop.from_gpt2(tmp_path / "model.safetensors", 0, num_heads=4)


@pytest.mark.parametrize("part", ["attn.rotary.inv_freq", "attn.q_norm.weight"])
def test_more_than_gpt2(part):
    shapes = {"c_attn.weight": (24, 8), "c_proj.weight": (8, 8)}
    state = {f"transformer.h.0.attn.{name}": torch.ones(shape) for name, shape in shapes.items()}
    interop.from_nanogpt(state, 0, num_heads=2)
    for name in (f"transformer.h.0.{part}", "transformer.rotary_emb.inv_freq"):
        with pytest.raises(ValueError, match=re.escape(f"got also ['{name}']")):
            interop.from_nanogpt(state | {name: torch.ones(4)}, 0, num_heads=2)


UNKNOWN = {  # their names are the most like GPT-2's and BERT's
    "GPTNeo": {"num_layers": 2, "num_heads": 4, "attention_types": [[["global"], 2]]},
    "Albert": {"embedding_size": 12}, "DebertaV2": {}, "Beit": VIT,
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_layouts_are_refused(name):
    state = made(name, **ENCODER | UNKNOWN[name]).state_dict()
    for load in (interop.from_bert, interop.from_gpt2, interop.from_nanogpt):
        with pytest.raises(ValueError, match="source must hold"):
            load(state, 0, num_heads=4)
