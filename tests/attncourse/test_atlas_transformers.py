"""Models of transformers in an atlas: exactly their own weights, one layer at a time.

All are tiny, random and made from their settings; nothing is looked up anywhere. What they are held
against is what they hand out themselves with `attn_implementation="eager"`.
"""

import os
import shutil
import sys
from functools import partial
from weakref import WeakSet

import pytest
import torch
from tools.refusing import assert_named
from torch import nn

from attncourse import atlas
from attncourse.atlas import _layer_scores
from attncourse.atlas.__main__ import main

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")

V, LAYERS, HEADS, D, PLACES = 41, 3, 4, 24, 40
GPT2 = {"vocab_size": V, "n_positions": PLACES, "n_embd": D, "n_layer": LAYERS, "n_head": HEADS}
SIZES = {
    "vocab_size": V, "hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "intermediate_size": 10, "max_position_embeddings": PLACES,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2, "pad_token_id": 0}
FAMILIES = {
    "GPT2": GPT2,
    "Bert": SIZES,
    "Llama": GROUPED,
    "Mistral": {**GROUPED, "sliding_window": 5},
    "Gemma2": {**GROUPED, "head_dim": 8, "sliding_window": 5, "attn_logit_softcapping": 2.0},
    "GPTNeoX": SIZES,
    "Albert": {**SIZES, "embedding_size": 8},  # one layer, three times
}  # fmt: skip
# These hand out all layers at the end: most have no function for our attention to call. A release
# that gives one of them such a function turns it into one of the families above.
AT_ONCE = {
    "Bloom": {"vocab_size": V, "hidden_size": D, "n_layer": LAYERS, "n_head": HEADS},
    "DebertaV2": SIZES,
    "DeepseekV32": {  # chooses two keys per query, by a mask that only "eager" gets
        **GROUPED, "num_key_value_heads": HEADS, "first_k_dense_replace": LAYERS, "index_topk": 2,
        "index_n_heads": 2, "index_head_dim": 8, "q_lora_rank": 8, "kv_lora_rank": 8,
        "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 6,
    },
}  # fmt: skip
ALL = FAMILIES | AT_ONCE
CAUSAL = "GPT2 Llama Mistral Gemma2 GPTNeoX Bloom DeepseekV32".split()
T = 13
IDS = torch.randint(3, V, (T,), generator=torch.Generator().manual_seed(3)).tolist()
IDS[7:10] = IDS[1:4]


def made(name, model="Model", **sizes):
    """Return a family's model with all its numbers drawn at random, in training mode."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes)
    model = getattr(transformers, f"{name}{model}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.4)
    return model.train()


def handed_out(model):
    """Return the weights that a model hands out with the attention that is called eager."""
    mode, own = model.training, model.config._attn_implementation
    model.eval().config._attn_implementation = "eager"
    with torch.no_grad():
        weights = model(torch.tensor([IDS]), output_attentions=True).attentions
    model.train(mode).config._attn_implementation = own
    return weights


def book_of(model, texts=(IDS,), **options):
    return atlas.from_model(model, texts, progress=False, **options)


@pytest.fixture
def rows(monkeypatch):
    """Look at five rows of queries at a time, and note them."""
    monkeypatch.setattr(_layer_scores, "AT_ONCE", 5 * HEADS * T)
    noted, add = [], _layer_scores.LayerView.add

    def note(view, weights):
        noted.append(weights.clone())
        add(view, weights)

    monkeypatch.setattr(_layer_scores.LayerView, "add", note)
    return noted


def assert_own_weights(model, rows):
    """Fail unless an atlas sees what a model hands out, row by row; return the atlas."""
    expected = handed_out(model)
    book = book_of(model)
    assert [weights.shape[1] for weights in rows] == [5, 5, 3] * len(expected)
    for layer, weights in enumerate(expected):
        seen = torch.cat(rows[3 * layer : 3 * layer + 3], dim=1)
        torch.testing.assert_close(seen, weights[0], atol=1e-5, rtol=0)
    return book


@pytest.mark.parametrize("name", ALL)
def test_weights_are_the_models_own(rows, name):
    model = made(name, **ALL[name])
    own = model.config._attn_implementation
    book = assert_own_weights(model, rows)
    assert book.causal == (name in CAUSAL)
    assert (book.num_layers, book.num_heads) == (LAYERS, HEADS)
    assert book.value_norms is not None or name in AT_ONCE
    assert model.training and model.config._attn_implementation == own


def test_an_attention_that_asks_twice_is_one_layer():
    model = made("DiffLlama", **GROUPED)  # once for each half of the values
    expected, book = handed_out(model), book_of(model)
    torch.testing.assert_close(book.maps, torch.cat(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_lengths_of_values(name):
    model = made(name, **FAMILIES[name])
    caught = []
    part = model.h[1].attn.c_attn if name == "GPT2" else model.layers[1].self_attn.v_proj
    part.register_forward_hook(lambda _, __, output: caught.append(output[0]))
    book = book_of(model)
    values = caught[0][:, -D:] if name == "GPT2" else caught[0]  # [T, h_kv d_v]
    norms = values.unflatten(-1, (-1, D // HEADS)).norm(dim=-1).T  # [h_kv, T]
    expected = norms.repeat_interleave(HEADS // len(norms), 0)
    torch.testing.assert_close(book.value_norms[1], expected)
    assert book.layer_names[1] == ("h.1.attn" if name == "GPT2" else "layers.1.self_attn")
    assert book_of(model.bfloat16()).value_norms.dtype == torch.float32  # for the page


@pytest.mark.parametrize("name", ["GPT2", "Bloom"])
def test_settings_of_what_comes_out_change_nothing(name):
    expected = book_of(made(name, **ALL[name])).maps
    for settings in ({"return_dict": False}, {"output_hidden_states": True}):
        assert torch.equal(book_of(made(name, **ALL[name], **settings)).maps, expected)


def test_a_head_on_top_is_left_out_and_a_wrapped_model_refused():
    model = made("GPT2", "LMHeadModel", **GPT2)
    model.lm_head.register_forward_hook(lambda *_: pytest.fail("logits were computed"))
    assert book_of(model).layer_names == tuple(f"h.{i}.attn" for i in range(LAYERS))
    with pytest.raises(TypeError, match=r"got BaseModel\w+: .* wrapped"):
        book_of(nn.DataParallel(made("GPT2", **GPT2)))


def test_the_encoder_of_an_encoder_decoder(rows):
    sizes = {"d_kv": 6, "num_layers": 2, "num_heads": HEADS, "d_ff": 10}
    model = made("T5", vocab_size=V, d_model=D, **sizes)
    with pytest.raises(ValueError, match=r"pass model.get_encoder"):
        book_of(model)
    assert_own_weights(model.get_encoder(), rows)


@pytest.mark.parametrize("name", ["GPT2", "Bloom"])
def test_an_error_leaves_a_model_as_it_was(name):
    model = made(name, **ALL[name])
    own = model.config._attn_implementation
    model.h[0].eval()
    before = [part.training for part in model.modules()]
    model.h[1].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        book_of(model)
    assert model.config._attn_implementation == own
    assert [part.training for part in model.modules()] == before


def test_memory_is_some_rows_of_one_layer(monkeypatch):
    long, rows = 384, 8
    monkeypatch.setattr(_layer_scores, "AT_ONCE", rows * HEADS * long)
    held, add = WeakSet(), _layer_scores.LayerView.add

    def note(view, weights):
        held.add(weights)
        assert weights.shape == (HEADS, rows, long) and len(held) <= 2  # and the last one's
        add(view, weights)

    monkeypatch.setattr(_layer_scores.LayerView, "add", note)
    book_of(made("GPT2", **{**GPT2, "n_positions": long}), [torch.arange(long).remainder(V)])


WORDS = "the cat sat on a mat and then slept".split()
TEXT = "the cat sat on the mat and then the cat slept"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved GPT-2 with a tokenizer of words."""
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path_factory.mktemp("models") / "tiny"
    made("GPT2", "LMHeadModel", **GPT2).save_pretrained(path)
    vocabulary = {word: i for i, word in enumerate(["<unk>", *WORDS])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(path)
    return path


@pytest.fixture
def file(tmp_path):
    """A file with a text."""
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_folder_brings_its_tokenizer(folder, monkeypatch):
    book = book_of(folder, [TEXT])
    assert book.name == "tiny" and book.library == "transformers"
    assert book.tokens == tuple(TEXT.split())
    monkeypatch.chdir(folder)
    assert book_of(".", [TEXT]).name == "tiny"
    assert book_of(str(folder), [[1, 2, 3]]).tokens == ("the", "cat", "sat")


def test_a_folder_without_a_tokenizer_and_no_folder(tmp_path):
    made("GPT2", **GPT2).save_pretrained(tmp_path)
    assert_named(ValueError, "tokenizer", partial(book_of, tmp_path, [TEXT]))
    assert book_of(tmp_path, [[1, 2, 3]]).tokens == ("1", "2", "3")
    for where in ("./nowhere", "a/b/c"):
        with pytest.raises(FileNotFoundError, match=f"got '{where}'"):
            book_of(where, [TEXT])


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("model.safetensors", lambda old: old[:2000]),
        ("config.json", lambda old: old.replace(b": 24", b": 32")),
        ("tokenizer.json", lambda _: b"{}"),
    ],
)
def test_a_damaged_folder(folder, tmp_path, file, damage):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / file).write_bytes(damage((tmp_path / file).read_bytes()))
    with pytest.raises(ValueError, match=r"^(model must be a folder with a model|tokenizer must)"):
        book_of(tmp_path, [TEXT])


def test_weights_that_are_missing_are_not_drawn_at_random(tmp_path):
    model = made("Bert", **SIZES)

    def book_without(part):
        kept = {name: x for name, x in model.state_dict().items() if part not in name}
        model.save_pretrained(tmp_path, state_dict=kept)
        return book_of(tmp_path, [[1, 2, 3]])

    assert book_without("pooler").num_layers == LAYERS  # of no use for attention
    with pytest.raises(ValueError, match=r"lacks 1 .* encoder.layer.1.*key.weight"):
        book_without("layer.1.attention.self.key.weight")


def test_no_network_and_no_transformers(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)  # the hub's client tries again for 23 seconds
    with pytest.raises(OSError, match=r"a folder here, .* on the hub, .* save_pret"):
        book_of("nobody/nothing", [TEXT])
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="pip install 'transformers"):
        book_of("gpt2", [TEXT])


def asked(folder, file, *options):
    """Return the status of the command."""
    return main([str(folder), "--text", str(file), "--quiet", *map(str, options)])


def test_the_command_prints_a_table_and_writes_a_page_of_each_text(folder, file, tmp_path, capsys):
    pytest.importorskip("anywidget")
    file.write_text(f"{TEXT}\n\nthe mat\nsat on the cat\n", encoding="utf-8")
    page = tmp_path / "atlas.html"
    assert asked(folder, file, "-o", page) == 0
    told = capsys.readouterr()
    assert told.err == "" and transformers.utils.logging.is_progress_bar_enabled()
    *lines, saved = told.out.splitlines()
    assert lines[0] == "Atlas of tiny: 3 layers of 4 heads, 2 texts of 6 to 11 tokens, causal"
    assert len(lines) == 8 and all(line.count("±") == 3 for line in lines[2:])
    written = page.read_text(encoding="utf-8")
    assert "<title>Atlas of heads: tiny</title>" in written and ", transformers " in written
    assert saved.startswith(f"saved: {page}, ")
    other = tmp_path / "other.txt"
    other.write_text(TEXT, encoding="utf-8-sig")  # a mark at the beginning is no token
    assert asked(folder, file, "--name", "mine", "--text", other) == 0
    assert "mine: 3 layers of 4 heads, 3 texts of 6 to 11 tokens" in capsys.readouterr().out
    other.write_text("cat " * 80, encoding="utf-8")
    assert asked(folder, file, "--text", other, "-o", page) == 0
    assert "3 paragraphs, cut into 4 texts of at most 40 tokens" in capsys.readouterr().out


def test_whoever_reads_the_command_may_go(folder, file, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert asked(folder, file) == 0


def test_the_command_says_what_it_cannot_do(folder, file, tmp_path, capsys):
    pytest.importorskip("anywidget")
    short = tmp_path / "short.txt"
    short.write_text(f"{TEXT}\n\ncat", encoding="utf-8")
    for where, options, words in (
        ("./nowhere", [], "no such folder"),
        (folder, ["--text", short], f"paragraph 2 of {short} "),
        (folder, ["-o", tmp_path / "nowhere" / "atlas.html"], "--output must be in a folder"),
        (folder, ["-o", tmp_path], "--output must be a file, got the folder"),
        (folder, ["-o", file], "--output must be another file"),
    ):
        assert asked(where, file, *options) == 2
        assert words in " ".join(capsys.readouterr().err.split())  # whatever lines it fills
    assert file.read_text(encoding="utf-8") == TEXT
    with pytest.raises(SystemExit, match="2"):
        asked(folder, "none.txt")


GPT_OSS = {"head_dim": 6, "num_local_experts": 2, "num_experts_per_tok": 1}
CASES = {
    "Mamba": ({"vocab_size": V, "hidden_size": D, "num_hidden_layers": 2}, "mamba"),
    "ViT": ({"hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 4}, "pixel_values"),
    "GptOss": ({**GROUPED, **GPT_OSS}, "sink"),
    "Longformer": ({**SIZES, "attention_window": 4}, "layer 0 must have weights"),
    "Canine": (SIZES, "layer 1 must have weights"),  # letters, read in pieces
}


@pytest.mark.parametrize("name", CASES)
def test_models_without_weights_to_show_are_refused(name):
    sizes, words = CASES[name]
    with pytest.raises(ValueError, match=words):
        book_of(made(name, **sizes))


@pytest.mark.parametrize(
    ("name", "sizes", "ids", "words"),
    [
        ("GPT2", GPT2, IDS * 4, "at most 40 .* got 52"),
        ("Roberta", SIZES, [5] * PLACES, "at most 38 .* got 40"),  # behind the place of padding
        ("Bert", SIZES, [3, V], "from 0 to 40.* got 41"),
    ],
)
def test_texts_that_do_not_fit_are_refused(name, sizes, ids, words):
    with pytest.raises(ValueError, match=rf"^texts\[0\] must .*{words}"):
        book_of(made(name, **sizes), [ids])
