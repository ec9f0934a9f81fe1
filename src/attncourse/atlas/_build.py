"""Make an atlas: the model reads texts one by one, and their scores are put together."""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from attncourse.atlas._aggregate import is_causal, scores_of
from attncourse.atlas._atlas import Atlas
from attncourse.atlas._backends import FunctionReader, OwnReader
from attncourse.atlas._layer_scores import Layer, TextView
from attncourse.atlas._loading import load_model, load_tokenizer
from attncourse.atlas._texts import Text, checked_texts, needs_tokenizer, pieces_of
from attncourse.atlas._transformers import TransformersReader, is_transformers_model
from attncourse.progress_bar import opened_bar
from attnlib.checks import checked_list, require_count, require_flag, require_text
from attnlib.model import TransformerModel

Reader = OwnReader | FunctionReader | TransformersReader
Texts = Iterable[str | Sequence[int] | Tensor]
READING = threading.RLock()  # a model is set up while it reads: a second thread would see that


def from_model(
    model: Any,
    texts: Texts,
    *,
    tokenizer: Any = None,
    name: str | None = None,
    shown: int = 0,
    progress: bool = True,
) -> Atlas:
    """Score every head of a model on texts.

    Each text is read alone, so nothing is filled up, and every text counts alike in the means. A
    layer is looked at while it is computed, some rows of queries at a time, and forgotten: what is
    kept is O(T) per head. A model of transformers is left as it was; its weights are those of
    `attn_implementation="eager"`, whatever it attends by otherwise.

    Example:
        >>> import torch
        >>> from attncourse import atlas
        >>> back = torch.eye(6).roll(-1, dims=1)  # each looks at the token before it
        >>> back[0] = torch.eye(6)[0]
        >>> book = atlas.from_model(lambda ids: [back.expand(1, 2, 6, 6)], [[3, 1, 4, 1, 5, 9]])
        >>> book.scores["previous token"].mean
        tensor([[1., 1.]], dtype=torch.float64)

    Args:
        model: one of transformers, or the folder or hub id of one; a `TransformerModel`; or a
            function from ids, int64 [1, T], to the weights of each layer, [1, h, T, T]. A function
            that yields them one by one needs the memory of one layer only; a module runs
            without dropout, in evaluation mode.
        texts: strings, or the ids of each text without padding.
        tokenizer: with `encode` and `decode`, as those of transformers, tokenizers and
            `attncourse.tokens` have them; for ids, a list of names will do. Of a folder or a hub id
            it is loaded if it is left out.
        name: what the model is called; its own name if left out.
        shown: which of the texts is shown in maps, counted from 0.
        progress: whether a bar shows how many layers were seen, on a terminal or in a notebook.

    Raises:
        TypeError: no model, texts that are neither strings nor ids, no tokenizer for strings, or
            another one than those above.
        ValueError: no text, a text of fewer than two tokens, more than the model has positions, or
            ids that it doesn't know; a model without attention weights to show, or with other
            numbers of heads in some layers; weights that aren't attention.
        FileNotFoundError, OSError: no such folder; a hub id that can't be had, as without a
            network.
        ImportError: a folder or hub id without transformers, or a bar without tqdm.
    """
    return build_atlas(model, texts, tokenizer, name, shown, progress)


def build_atlas(
    model: Any, texts: Texts, tokenizer: Any = None, name: str | None = None, shown: int = 0,
    progress: bool = True, longest: int | None = None,
) -> Atlas:  # fmt: skip
    """Do what `from_model` does, with texts cut into pieces of at most `longest` tokens.

    Where `longest` is given, none is longer than the model has positions.
    """
    require_flag("progress", progress)
    if name is not None:
        require_text("name", name)
    texts = texts if isinstance(texts, str | Mapping) else checked_list("texts", texts)
    if isinstance(tokenizer, str):
        raise TypeError(
            f"tokenizer must be one that is loaded, got the string {tokenizer!r}: "
            "AutoTokenizer.from_pretrained loads it"
        )
    if not (tokenizer is None or isinstance(tokenizer, Sequence) or hasattr(tokenizer, "decode")):
        raise TypeError(
            "tokenizer must have encode and decode, or be a list in which name i is that of id i, "
            f"got {type(tokenizer).__name__}"
        )
    if isinstance(model, str | PathLike):
        where, model = model, load_model(model, progress=progress)
        if os.path.isdir(where):
            name = name or os.path.basename(os.path.abspath(where))  # also of "."
        if tokenizer is None:
            tokenizer = load_tokenizer(where, wanted=needs_tokenizer(texts), progress=progress)
    reader = _reader_of(model)
    read = checked_texts(texts, tokenizer)
    for i, text in enumerate(read):
        _require_known(f"texts[{i}]", text, reader)
    if longest is not None:
        most = min(longest, reader.length or longest)
        read = [piece for text in read for piece in pieces_of(text, most)]
    require_count("shown", shown)
    if shown >= len(read):
        raise ValueError(f"shown must be one of {len(read)} texts, counted from 0, got {shown}")
    for i, text in enumerate(read):
        _require_fit(f"texts[{i}]", text, reader)
    name = name or reader.name
    seen = _see(reader, read, shown, name, progress)
    return _atlas(name, reader.library, read, shown, seen)


def _reader_of(model: Any) -> Reader:
    model = getattr(model, "_orig_mod", model)  # inside what torch.compile returns
    if isinstance(model, TransformerModel):
        return OwnReader(model)
    if is_transformers_model(model):
        return TransformersReader(model)
    if callable(model):
        return FunctionReader(model)
    raise TypeError(
        "model must be one of transformers (or its folder or hub id), an attnlib TransformerModel, "
        f"or a function from ids to weights, got {type(model).__name__}"
    )


def _require_fit(name: str, text: Text, reader: Reader) -> None:
    T = len(text.ids)
    if reader.length is not None and reader.length < T:
        raise ValueError(
            f"{name} must have at most {reader.length} tokens, the positions of {reader.name}, "
            f"got {T}: cut it, or make several of it"
        )


def _require_known(name: str, text: Text, reader: Reader) -> None:
    largest = int(text.ids.max())
    if reader.vocabulary_size is not None and largest >= reader.vocabulary_size:
        raise ValueError(
            f"{name} must have ids from 0 to {reader.vocabulary_size - 1}, those of {reader.name}, "
            f"got {largest}: is the tokenizer another model's?"
        )


def _see(
    reader: Reader, texts: Sequence[Text], shown: int, name: str, progress: bool
) -> list[list[Layer]]:
    seen: list[list[Layer]] = []
    with opened_bar(progress, desc=name, unit="layer", total=None, disable=None) as bar:
        advance = (lambda: None) if bar is None else bar.update
        for i, text in enumerate(texts):
            view = TextView(text.ids, i == shown, advance)
            with READING:
                reader.read(text.ids[None], view)
            if not view.layers:
                raise ValueError(f"model must hand out the weights of a layer, got none: {name}")
            seen.append(view.layers)
            if bar is not None and i == 0:
                bar.total = len(texts) * len(view.layers)
    _require_alike(seen)
    return seen


def _require_alike(seen: Sequence[Sequence[Layer]]) -> None:
    """Raise ValueError unless all texts showed as many layers, of as many heads each."""
    heads = [[len(layer.by_offset) for layer in text] for text in seen]
    if any(found != heads[0] for found in heads):
        raise ValueError(
            f"model must hand out the same layers and heads for each text, got {heads[0]} heads "
            f"and {next(found for found in heads if found != heads[0])}"
        )
    if len(set(heads[0])) > 1:
        raise ValueError(
            f"model must have as many heads in each layer, got {heads[0]}: an atlas is a table of "
            "layers and heads"
        )


def _atlas(
    name: str, library: str | None, texts: Sequence[Text], shown: int, seen: Sequence[list[Layer]]
) -> Atlas:
    pictures = [layer.picture for layer in seen[shown] if layer.picture is not None]
    norms = [picture.value_norms for picture in pictures if picture.value_norms is not None]
    return Atlas(
        name=name,
        layer_names=tuple(layer.name for layer in seen[0]),
        texts=tuple(text.tokens for text in texts),
        shown=shown,
        causal=is_causal(seen),
        scores=scores_of(seen, [len(text.ids) for text in texts]),
        maps=torch.stack([picture.maps for picture in pictures]),
        top_keys=torch.stack([picture.top_keys for picture in pictures]),
        top_weights=torch.stack([picture.top_weights for picture in pictures]),
        value_norms=torch.stack(norms) if len(norms) == len(pictures) else None,
        library=library,
    )
