"""Models of transformers, watched layer by layer.

Asked for `output_attentions`, a model keeps the weights of all layers until its end. So an
attention function of ours takes the place of the model's while the atlas looks. It calls the one
that the model's own file has for `attn_implementation="eager"`, on some rows of queries at a time,
and shows the weights that come back instead of keeping them: they are the model's own, by its own
code, and what goes on to the next layer is what would have gone on.
"""

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.atlas._layer_scores import TextView, block_of_rows
from attnlib.model.generation import in_evaluation

OURS = "attnlib_atlas"  # what our attention is called among those of transformers
BY_ROWS = ("position_bias",)  # options that have a row per query, as the mask has


class _NotByRowsError(Exception):
    """An attention can't be computed block by block of rows."""


class _Watch:
    """The text that is read now, and what the model calls its parts."""

    def __init__(self, model: nn.Module, text: TextView) -> None:
        self.text = text
        self.query: Tensor | None = None  # of the last call
        self.names = {id(part): name for name, part in model.named_modules()}


_watching: ContextVar[_Watch | None] = ContextVar("watching", default=None)


def is_transformers_model(model: object) -> bool:
    """Return whether a model is of transformers, without importing it."""
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(model).__mro__}
    return ("transformers", "PreTrainedModel") in kinds


class TransformersReader:
    """A model of transformers. It is left as it was."""

    library = "transformers"

    def __init__(self, model: Any) -> None:
        config = model.config
        if "decoder_input_ids" in _parameters(model):
            raise ValueError(
                f"model must read one text, got {type(model).__name__}, which reads one and writes "
                "another: pass model.get_encoder()"
            )
        if getattr(model, "main_input_name", "input_ids") != "input_ids":
            raise ValueError(
                f"model must read token ids, got {type(model).__name__}, which reads "
                f"{model.main_input_name}: pass a function from ids to weights"
            )
        self.whole_model = model
        self.model = model.base_model  # without what is computed of its result
        self.name = str(config.name_or_path or type(model).__name__).rstrip("/").split("/")[-1]
        self.length = _positions(model)
        embeddings = None
        with suppress(NotImplementedError):  # Canine hashes letters
            embeddings = model.get_input_embeddings()
        self.vocabulary_size: int | None = getattr(embeddings, "num_embeddings", None)

    def read(self, ids: Tensor, text: TextView) -> None:
        """Read ids, and see one layer at a time, or all at once where it must be."""
        ids = ids.to(self.model.device)
        with in_evaluation(self.model), torch.no_grad():
            try:
                with _attending_by(self.model, OURS), _shown_to(_Watch(self.model, text)):
                    self._call(ids)
            except _NotByRowsError:
                text.layers.clear()
            if not text.layers:
                self._read_all(ids, text)

    def _read_all(self, ids: Tensor, text: TextView) -> None:
        """Read ids; all layers' weights are handed out at the end."""
        result = None
        if "output_attentions" in _parameters(self.model) or "kwargs" in _parameters(self.model):
            with _attending_by(self.model, "eager"):
                result = self._call(ids, output_attentions=True, return_dict=True)
        weights = getattr(result, "attentions", None)
        if not weights or any(layer is None for layer in weights):
            kind = getattr(self.model.config, "model_type", "unknown")
            raise ValueError(
                f"model must have attention weights to show, but {type(self.whole_model).__name__} "
                f'(model_type "{kind}") handed out none: neither through transformers\' '
                "AttentionInterface nor with output_attentions=True"
            )
        for i, layer in enumerate(weights):
            text.whole(f"layer {i}", layer)

    def _call(self, ids: Tensor, **options: Any) -> Any:
        if "use_cache" in _parameters(self.model):
            options["use_cache"] = False  # there is no next call
        try:
            return self.model(input_ids=ids, **options)
        except IndexError as error:
            raise ValueError(
                f"texts must fit the model, but one of {ids.shape[1]} tokens doesn't: an id or a "
                f"place that {type(self.whole_model).__name__} hasn't ({error})"
            ) from error


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend as the module's own file does, block by block of rows, and show the weights."""
    own, watch = _own_attention(module), _watching.get()
    if watch is None:  # our name is set, but no atlas is being made
        return own(module, query, key, value, attention_mask, **options)
    _require_no_sink(module, options)
    if query is watch.query or _minds_eager(module):
        raise _NotByRowsError
    watch.query = query
    B, h, T = query.shape[:3]
    by_rows = {name: options.pop(name) for name in BY_ROWS if options.get(name) is not None}
    step = T if _holds_rows(own, options, T) else block_of_rows(h, T)
    view = watch.text.begin(watch.names.get(id(module), type(module).__name__))
    outputs = []
    for start in range(0, T, step):
        rows = slice(start, start + step)
        some = {name: _rows_of(x, rows, T) for name, x in by_rows.items()}
        output, weights = own(
            module, query[:, :, rows], key, value, _rows_of(attention_mask, rows, T),
            **some, **options,
        )  # fmt: skip
        if weights is None or weights.dim() != 4 or B != 1:
            raise _NotByRowsError
        outputs.append(output)  # [B, rows, h, d_v]
        view.add(weights[0])
    watch.text.end(view, value[0])
    return torch.cat(outputs, dim=1), None


def _own_attention(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """Return what a module's own file, or that of a class it stems from, has for "eager"."""
    for kind in type(module).__mro__:
        forward = inspect.unwrap(vars(kind).get("forward", _attend))
        own = forward.__globals__.get("eager_attention_forward")
        if own is not None:
            return own
    raise _NotByRowsError


def _minds_eager(module: nn.Module) -> bool:
    """Return whether a forward compares its attention's name with several, "eager" among them.

    Some of sparse attention (DeepSeek-V3.2) put the choice of their indexer into the mask for those
    alone: by any other name they hand over a mask without it.
    """
    forward = inspect.unwrap(type(module).forward)
    return any(isinstance(x, tuple) and "eager" in x for x in forward.__code__.co_consts)


def _require_no_sink(module: nn.Module, options: dict[str, Any]) -> None:
    """Raise ValueError if an attention gives some of its weight to what is no token."""
    if options.get("s_aux") is not None:
        raise ValueError(
            f"model must give all of its weight to tokens, but {type(module).__name__} lets each "
            "head leave a share to a learned sink (s_aux)"
        )


def _holds_rows(own: Callable, options: dict[str, Any], T: int) -> bool:
    """Return whether an option that an attention names itself may hold a row per query."""
    named = inspect.signature(own).parameters
    return any(
        isinstance(x, Tensor) and x.dim() > 1 and T in x.shape
        for name, x in options.items()
        if name in named
    )


def _rows_of(x: Tensor | None, rows: slice, T: int) -> Tensor | None:
    """Return the rows of a mask or a bias [..., T, T]; one for all queries stays as it is."""
    return x[..., rows, :] if x is not None and x.shape[-2] == T else x


@contextmanager
def _shown_to(watch: _Watch) -> Iterator[None]:
    before = _watching.set(watch)
    try:
        yield
    finally:
        _watching.reset(before)


@contextmanager
def _attending_by(model: nn.Module, implementation: str) -> Iterator[None]:
    """Let all parts of a model attend in one way, and afterwards each in its own again."""
    _register()
    before = [(config, config._attn_implementation) for config in _configs(model)]
    try:
        for config, _ in before:
            config._attn_implementation = implementation
        yield
    finally:
        for config, own in before:
            config._attn_implementation = own


def _configs(model: nn.Module) -> list[Any]:
    """Return the configurations of a model and of all its parts, each before those within it."""
    found: dict[int, Any] = {}

    def add(config: Any) -> None:
        if id(config) not in found and hasattr(config, "_attn_implementation"):
            found[id(config)] = config
            for name in getattr(config, "sub_configs", ()):
                add(getattr(config, name, None))

    for part in model.modules():
        add(getattr(part, "config", None))
    return list(found.values())


def _register() -> None:
    """Register our attention with transformers; it takes masks as "eager" does."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(OURS, _attend)
    AttentionMaskInterface.register(OURS, eager_mask)


def _parameters(model: nn.Module) -> Collection[str]:
    return inspect.signature(model.forward).parameters.keys()


def _positions(model: Any) -> int | None:
    """Return how many positions a model says that it has for tokens."""
    found = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(found, int) or found < 1:
        return None
    for name, part in model.named_modules():
        padded = isinstance(part, nn.Embedding) and part.padding_idx is not None
        if padded and name.endswith("position_embeddings"):  # RoBERTa's begin after padding's
            return part.num_embeddings - part.padding_idx - 1
    return found
