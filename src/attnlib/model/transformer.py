"""A Transformer that answers questions about its tokens, built from `TransformerBlock`.

Letters: B batch, T tokens, d model width (`d_model`), h heads (`num_heads`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from attnlib.attention import MultiHeadAttention
from attnlib.blocks import Activation, FeedForward, NormPosition, TransformerBlock
from attnlib.cache import KVCache
from attnlib.checks import (
    require_count,
    require_flag,
    require_not_negative,
    require_parameter_dtype,
    require_positive_int,
)
from attnlib.model import _checks as checks
from attnlib.model import _spec
from attnlib.model._readout import TiedReadout
from attnlib.model.sizes import Task, TaskSizes
from attnlib.norms import LayerNorm, make_norms
from attnlib.positions import LearnedPositions, RotaryPositions, SinusoidalPositions

AddedPositions = Literal["learned", "sinusoidal"] | None
Positions = Literal["learned", "sinusoidal", "rotary"] | None

# As in GPT-2 (github.com/openai/gpt-2, src/model.py): small compared to what the blocks add.
EMBEDDING_STD = 0.02


class ModelOutput(NamedTuple):
    """What a model says of a batch.

    Attributes:
        logits: [B, T, answers] for each readout, by its name.
        weights: [B, h, T, T] for each layer, or None without need_weights.
    """

    logits: dict[str, Tensor]
    weights: list[Tensor] | None


class TransformerModel(nn.Module):
    """Token and position embeddings, a stack of blocks, a norm, linear readouts.

    What happens to the tokens::

        tokens [B, T] --embed--> x [B, T, d] --block--> ... --block--> [B, T, d]
                      --norm, W_readout--> logits [B, T, answers], for each readout

    Positions are learned (Gehring et al. 2017), unless `positions` says otherwise. Each readout
    answers for every token; the task decides which answers count. Embeddings begin at
    N(0, embedding_std), readouts as attention does: Xavier-uniform, biases 0.

    Args:
        vocabulary_size: how many token ids there are.
        length: the longest T.
        blocks: at least one, all of the same width d.
        readouts: how many answers each has, by its name.
        final_norm: a module [B, T, d] -> [B, T, d]. If left out, a LayerNorm after pre-norm blocks
            and nothing after others; `nn.Identity()` for nothing.
        causal: whether a token may look only at itself and at earlier ones.
        readout_bias: whether readouts add a bias.
        positions: what is added to the embeddings: "learned" vectors, "sinusoidal" ones, or None,
            for blocks with rotary positions (`MultiHeadAttention(rotary=...)`) and for models
            without positions.
        tied: whether the only readout, with an answer for each token, uses the embedding's matrix
            (Press & Wolf 2017) instead of weights of its own.
        embedding_std: standard deviation of the initial embeddings. `spec` doesn't hold it, but it
            can decide which of several solutions training finds.
        readout_std: draw readouts from N(0, readout_std) instead, as GPT-2 draws all its matrices.
            If it is small, all answers are equally likely before training.
        device, dtype: of the parameters outside the blocks.

    Example:
        >>> import torch
        >>> from attnlib.model import TaskSizes, TransformerModel
        >>> sizes = TaskSizes(vocabulary_size=10, length=6, readouts={"next": 10}, causal=True)
        >>> model = TransformerModel.of_sizes(sizes, d_model=8, num_heads=2)
        >>> answers = model(torch.tensor([[3, 1, 4]]), need_weights=True)
        >>> answers.logits["next"].shape, answers.weights[0].shape
        (torch.Size([1, 3, 10]), torch.Size([1, 2, 3, 3]))

    Raises:
        TypeError: parts or options of another type.
        ValueError: sizes below 1, no block, blocks of different widths, one block in two places, a
            readout whose name a module can't have, or readouts that can't be tied.
    """

    def __init__(
        self,
        vocabulary_size: int,
        length: int,
        blocks: Sequence[TransformerBlock],
        readouts: Mapping[str, int],
        *,
        final_norm: nn.Module | None = None,
        causal: bool = False,
        readout_bias: bool = False,
        positions: AddedPositions = "learned",
        tied: bool = False,
        embedding_std: float = EMBEDDING_STD,
        readout_std: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive_int("vocabulary_size", vocabulary_size)
        require_positive_int("length", length)
        blocks = checks.checked_blocks(blocks)
        checks.require_readouts(readouts)
        require_flag("causal", causal)
        require_flag("readout_bias", readout_bias)
        checks.require_tied(tied, readouts, vocabulary_size, readout_bias)
        require_not_negative("embedding_std", embedding_std)
        if readout_std is not None:
            require_not_negative("readout_std", readout_std)
        require_parameter_dtype(dtype)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        d = blocks[0].d_model
        if final_norm is None:
            wanted = blocks[-1].norm_position == "pre"
            final_norm = LayerNorm(d, **options) if wanted else nn.Identity()
        elif not isinstance(final_norm, nn.Module):
            raise TypeError(f"final_norm must be a module, got {type(final_norm).__name__}")
        self.vocabulary_size, self.length, self.d_model = vocabulary_size, length, d
        self.causal, self.tied = causal, tied
        self.embedding_std, self.readout_std = embedding_std, readout_std
        self.token_embedding = _embedding(vocabulary_size, d, options)
        self.position_embedding = _positions(positions, length, d, embedding_std, options)
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = final_norm
        self.readouts = nn.ModuleDict(
            {
                name: TiedReadout(self.token_embedding)
                if tied
                else nn.Linear(d, size, readout_bias, **options)
                for name, size in readouts.items()
            }
        )
        self.reset_parameters()

    @staticmethod
    def of_sizes(
        task: Task | TaskSizes,
        d_model: int,
        num_heads: int,
        num_layers: int = 1,
        *,
        d_ff: int | None = None,
        norm_position: NormPosition = "pre",
        norm: Callable[..., nn.Module] = LayerNorm,
        num_kv_heads: int | None = None,
        bias: bool = False,
        readout_bias: bool | None = None,
        activation: Activation = "gelu",
        positions: Positions = "learned",
        tied: bool = False,
        dropout: float = 0.0,
        embedding_std: float = EMBEDDING_STD,
        readout_std: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "TransformerModel":
        """Make a model for a task, with equal blocks.

        Args:
            task: what has a vocabulary, a length, readouts and causal; or its sizes.
            d_model: width d of a token.
            num_heads: h of every layer; must divide d_model.
            num_layers: how many blocks.
            d_ff: hidden width of the feed-forward networks; none at all if 0 or left out.
            norm_position: "pre", "post" or None, as for `TransformerBlock`. Only "pre" has a final
                norm.
            norm: makes a norm: LayerNorm, RMSNorm.
            num_kv_heads: how many heads keys and values have; h if left out.
            bias: whether projections and feed-forward networks add biases.
            readout_bias: whether readouts do; if left out, as `bias`, but never where tied.
            activation: of feed-forward networks, as for `FeedForward`.
            positions: as for the constructor, or "rotary": each layer turns queries and keys
                (`RotaryPositions`).
            dropout: as for `TransformerBlock.of_parts`.
            tied, embedding_std, readout_std: as for the constructor.
            device, dtype: of all parameters.

        Raises:
            TypeError, ValueError: as the constructor and the parts.
        """
        sizes = task if isinstance(task, TaskSizes) else TaskSizes.of(task)
        if positions not in ("learned", "sinusoidal", "rotary", None):
            raise ValueError(
                'positions must be "learned", "sinusoidal", "rotary" or None, '
                f"got {positions!r:.40}"
            )
        require_positive_int("num_layers", num_layers)
        if d_ff is not None:
            require_count("d_ff", d_ff)
        if readout_bias is None:
            readout_bias = bias and not tied
        options: dict[str, Any] = {"device": device, "dtype": dtype}

        def block() -> TransformerBlock:
            attention = MultiHeadAttention(
                d_model, num_heads, num_kv_heads=num_kv_heads, bias=bias,
                rotary=RotaryPositions() if positions == "rotary" else None, **options,
            )  # fmt: skip
            feed_forward = None
            if d_ff:
                feed_forward = FeedForward(
                    d_model, d_ff, activation=activation, bias=bias, **options
                )
            sublayers = 2 if d_ff else 1
            norms = make_norms(norm, sublayers if norm_position else 0, d_model, options)
            return TransformerBlock.of_parts(
                attention, feed_forward, norms, norm_position=norm_position, dropout=dropout
            )

        return TransformerModel(
            sizes.vocabulary_size,
            sizes.length,
            [block() for _ in range(num_layers)],
            sizes.readouts,
            final_norm=norm(d_model, **options) if norm_position == "pre" else None,
            causal=sizes.causal,
            readout_bias=readout_bias,
            positions=None if positions == "rotary" else positions,
            tied=tied,
            embedding_std=embedding_std,
            readout_std=readout_std,
            **options,
        )

    def reset_parameters(self) -> None:
        """Draw new embeddings and readouts; the blocks and the norm keep theirs."""
        if not self.token_embedding.weight.is_meta:
            nn.init.normal_(self.token_embedding.weight, std=self.embedding_std)
        if isinstance(self.position_embedding, LearnedPositions):
            self.position_embedding.reset_parameters()
        for readout in self.readouts.values():
            if isinstance(readout, TiedReadout):
                continue
            assert isinstance(readout, nn.Linear)
            if self.readout_std is None:
                nn.init.xavier_uniform_(readout.weight)
            elif not readout.weight.is_meta:
                nn.init.normal_(readout.weight, std=self.readout_std)
            if readout.bias is not None:
                nn.init.zeros_(readout.bias)

    __call__: Callable[..., ModelOutput]  # for type checkers; as forward

    def forward(
        self,
        tokens: Tensor,
        *,
        key_mask: Tensor | None = None,
        head_masks: Sequence[Tensor | None] | Tensor | None = None,
        need_weights: bool = False,
        caches: Sequence[KVCache] | None = None,
    ) -> ModelOutput:
        """Answer about each token: [B, T] -> [B, T, answers] for each readout.

        Args:
            tokens: ids, int64 [B, T]; T and the tokens in caches are at most `length` together.
            key_mask: boolean [B, T], True = a real token; with caches, of all tokens so far.
            head_masks: for each layer a factor for each head's output, [h] or [B, h], where 0 mutes
                the head; or None.
            need_weights: also return each layer's weights.
            caches: a `KVCache` for each layer of a causal model, which holds the tokens before
                these and takes these in. So a text may come in pieces.

        Raises:
            TypeError: tokens that aren't int64, or options of another type.
            ValueError: shapes or devices that don't fit, ids outside the vocabulary, too many
                tokens or none, not as many head_masks or caches as layers, caches of different
                lengths, or caches for a model that isn't causal.
        """
        masks = checks.checked_head_masks(head_masks, len(self.blocks))
        of_layers = checks.checked_caches(caches, len(self.blocks), self.causal)
        past = len(caches[0]) if caches else 0
        checks.require_token_ids(tokens, self.token_embedding.weight, self.length, past)
        x = self.token_embedding(tokens)  # [B, T] -> [B, T, d]
        if self.position_embedding is not None:
            x = self.position_embedding(x, start=past)
        weights = []
        for block, head_mask, cache in zip(self.blocks, masks, of_layers, strict=True):
            x, of_layer = block(
                x, key_mask=key_mask, causal=self.causal, head_mask=head_mask,
                need_weights=need_weights, cache=cache,
            )  # fmt: skip
            weights.append(of_layer)
        x = self.final_norm(x)
        logits = {name: readout(x) for name, readout in self.readouts.items()}
        return ModelOutput(logits, weights if need_weights else None)

    def spec(self) -> dict[str, Any]:
        """Return a description of the model without weights, as plain JSON, for `of_spec`.

        Raises:
            TypeError: a part that isn't attnlib's own, has hooks, or was changed since it was made.
            ValueError: parts that share weights.
        """
        _spec.require_plain("the model", self, TransformerModel)
        spec = _spec.model_spec(self)
        _spec.require_same_parameters(self, TransformerModel.of_spec(spec, device="meta"))
        # numpy's numbers become Python's
        return json.loads(json.dumps(spec, default=methodcaller("item")))

    @staticmethod
    def of_spec(
        spec: Mapping[str, Any],
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "TransformerModel":
        """Build the model that `spec` describes, with new weights.

        Raises:
            TypeError, ValueError: other names than `spec` writes, or values that no model can have.
        """
        return TransformerModel(**_spec.model_options(spec, {"device": device, "dtype": dtype}))

    def extra_repr(self) -> str:
        """Return what the parts don't show, to be printed."""
        return f"causal={self.causal}"


def _positions(
    kind: Positions, length: int, d: int, std: float, options: Mapping[str, Any]
) -> LearnedPositions | SinusoidalPositions | None:
    """Make the module that adds positions to embeddings, if any."""
    if kind not in ("learned", "sinusoidal", None):
        hint = ": blocks have them, so give MultiHeadAttention(rotary=...)" * (kind == "rotary")
        raise ValueError(f'positions must be "learned", "sinusoidal" or None, got {kind!r}{hint}')
    if kind == "learned":
        return LearnedPositions(length, d, std=std, **options)
    return SinusoidalPositions(d) if kind == "sinusoidal" else None


def _embedding(number: int, d: int, options: Mapping[str, Any]) -> nn.Embedding:
    """Make an embedding; draw nothing on meta, where torch would import its slow compiler."""
    weight = torch.empty(number, d, **options)
    if weight.is_meta:
        return nn.Embedding.from_pretrained(weight, freeze=False)
    return nn.Embedding(number, d, **options)
