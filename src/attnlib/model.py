"""A Transformer that answers questions about its tokens, built of `TransformerBlock`.

Letters: B batch, T tokens, d model width (`d_model`), h heads (`num_heads`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from attnlib import _model_spec as parts
from attnlib._checks import (
    checked_list,
    require_count,
    require_flag,
    require_number,
    require_parameter_dtype,
    require_positive_int,
    require_same_device,
    require_tensor,
    shape_of,
)
from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, NormPosition, TransformerBlock
from attnlib.norms import LayerNorm

__all__ = ["Answers", "TaskSizes", "TransformerModel"]

# As GPT-2 draws its embeddings (Radford et al. 2019): small beside what the blocks add to them.
EMBEDDING_STD = 0.02


class Task(Protocol):
    """What a model must know of its task; those of `attnlib.relations` are such tasks."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """The words; a word's place is its token id."""

    @property
    def length(self) -> int:
        """The longest sentence, in tokens."""

    @property
    def readouts(self) -> Mapping[str, Sequence[str]]:
        """The possible answers of each readout, by its name."""

    @property
    def causal(self) -> bool:
        """Whether a token may look only at itself and what stands before it."""


class TaskSizes(NamedTuple):
    """The sizes of a task, for a model without one: words, tokens, answers of each readout."""

    vocabulary_size: int
    length: int
    readouts: Mapping[str, int]
    causal: bool = False

    @staticmethod
    def of(task: Task) -> "TaskSizes":
        """Return the sizes of a task."""
        readouts = {name: len(answers) for name, answers in task.readouts.items()}
        return TaskSizes(len(task.vocabulary), task.length, readouts, task.causal)


class Answers(NamedTuple):
    """What a model says of a batch.

    Attributes:
        logits: of each readout by its name, [B, T, answers].
        weights: of each layer, [B, h, T, T], if they were asked for.
    """

    logits: dict[str, Tensor]
    weights: list[Tensor] | None


class TransformerModel(nn.Module):
    """Token and position embeddings, blocks one after the other, a norm, linear readouts.

    What happens to the tokens::

        tokens [B, T] --embed--> x [B, T, d] --block--> ... --block--> [B, T, d]
                      --norm, W_readout--> logits [B, T, answers], for each readout

    Positions are learned (Gehring et al. 2017). Every token answers every readout; which answers
    count is the task's affair. Embeddings begin at N(0, embedding_std), readouts as attention does:
    Xavier-uniform, biases 0.

    Args:
        vocabulary_size: how many token ids there are.
        length: how many positions there are: the longest T.
        blocks: at least one, of the same width d.
        readouts: how many answers each has, by its name.
        final_norm: a module [B, T, d] -> [B, T, d]. Left out: a LayerNorm after a block that
            normalizes its input ("pre"), nothing after another; `nn.Identity()` is always nothing.
        causal: whether a token may look only at itself and what stands before it.
        readout_bias: whether readouts add a bias.
        embedding_std: how far apart the initial embeddings are. It isn't told by `spec`, but it can
            decide which of several solutions a training finds.
        device, dtype: of the parameters that aren't the blocks'.

    Example:
        >>> import torch
        >>> from attnlib.model import TaskSizes, TransformerModel
        >>> sizes = TaskSizes(vocabulary_size=10, length=6, readouts={"next": 10}, causal=True)
        >>> model = TransformerModel.of_sizes(sizes, d_model=8, num_heads=2)
        >>> answers = model(torch.tensor([[3, 1, 4]]), need_weights=True)
        >>> answers.logits["next"].shape, answers.weights[0].shape
        (torch.Size([1, 3, 10]), torch.Size([1, 2, 3, 3]))

    Raises:
        TypeError: parts or options of another kind.
        ValueError: sizes below 1, no block, blocks of different widths, one block in two places, or
            a readout whose name a module can't have.
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
        embedding_std: float = EMBEDDING_STD,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive_int("vocabulary_size", vocabulary_size)
        require_positive_int("length", length)
        blocks = _checked_blocks(blocks)
        _require_readouts(readouts)
        require_flag("causal", causal)
        require_flag("readout_bias", readout_bias)
        require_number("embedding_std", embedding_std)
        if not embedding_std >= 0:
            raise ValueError(f"embedding_std must not be negative, got {embedding_std}")
        require_parameter_dtype(dtype)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        d = blocks[0].d_model
        if final_norm is None:
            wanted = blocks[-1].norm_position == "pre"
            final_norm = LayerNorm(d, **options) if wanted else nn.Identity()
        elif not isinstance(final_norm, nn.Module):
            raise TypeError(f"final_norm must be a module, got {type(final_norm).__name__}")
        self.vocabulary_size, self.length, self.d_model = vocabulary_size, length, d
        self.causal, self.embedding_std = causal, embedding_std
        self.token_embedding = nn.Embedding(vocabulary_size, d, **options)
        self.position_embedding = nn.Embedding(length, d, **options)
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = final_norm
        self.readouts = nn.ModuleDict(
            {name: nn.Linear(d, size, readout_bias, **options) for name, size in readouts.items()}
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
        dropout: float = 0.0,
        embedding_std: float = EMBEDDING_STD,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "TransformerModel":
        """Make a model for a task, of blocks that are alike.

        Args:
            task: one of `attnlib.relations`, or its sizes.
            d_model: width d of a token.
            num_heads: h of every layer; must divide d_model.
            num_layers: how many blocks.
            d_ff: hidden width of a block's feed-forward network; none at all if 0 or left out.
            norm_position: "pre", "post" or None, as for `TransformerBlock`. Only "pre" has a final
                norm.
            norm: what makes a norm: LayerNorm, RMSNorm.
            num_kv_heads: how many heads keys and values have; h if left out.
            bias: whether projections, feed-forward networks and readouts add biases.
            dropout: as for `TransformerBlock.of_parts`.
            embedding_std: as for the constructor.
            device, dtype: of all parameters.

        Raises:
            TypeError, ValueError: as the constructor and the parts.
        """
        sizes = task if isinstance(task, TaskSizes) else TaskSizes.of(task)
        require_positive_int("num_layers", num_layers)
        if d_ff is not None:
            require_count("d_ff", d_ff)
        options: dict[str, Any] = {"device": device, "dtype": dtype}

        def block() -> TransformerBlock:
            attention = MultiHeadAttention(
                d_model, num_heads, num_kv_heads=num_kv_heads, bias=bias, **options
            )
            feed_forward = FeedForward(d_model, d_ff, bias=bias, **options) if d_ff else None
            sublayers = 2 if d_ff else 1
            norms = [norm(d_model, **options) for _ in range(sublayers if norm_position else 0)]
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
            readout_bias=bias,
            embedding_std=embedding_std,
            **options,
        )

    def reset_parameters(self) -> None:
        """Draw new embeddings and readouts; the blocks and the norm keep theirs."""
        for embedding in (self.token_embedding, self.position_embedding):
            nn.init.normal_(embedding.weight, std=self.embedding_std)
        for readout in self.readouts.values():
            assert isinstance(readout, nn.Linear)
            nn.init.xavier_uniform_(readout.weight)
            if readout.bias is not None:
                nn.init.zeros_(readout.bias)

    __call__: Callable[..., Answers]  # for type checkers; as forward

    def forward(
        self,
        tokens: Tensor,
        *,
        key_mask: Tensor | None = None,
        head_masks: Sequence[Tensor | None] | Tensor | None = None,
        need_weights: bool = False,
    ) -> Answers:
        """Answer about each token: [B, T] -> [B, T, answers] for each readout.

        Args:
            tokens: ids, int64 [B, T], with T at most `length`.
            key_mask: boolean [B, T], True = a real token.
            head_masks: for each layer a factor for each head's output, [h] or [B, h]; 0 mutes the
                head, None in a layer's place leaves the layer alone.
            need_weights: also return each layer's weights.

        Raises:
            TypeError: tokens that aren't int64, or options of another type.
            ValueError: shapes or devices that don't fit, ids that aren't in the vocabulary, too
                many tokens or none, more or fewer head_masks than layers.
        """
        self._require_tokens(tokens)
        masks = self._checked_head_masks(head_masks)
        positions = self.position_embedding.weight[: tokens.shape[1]]  # [length, d] -> [T, d]
        x = self.token_embedding(tokens) + positions  # [B, T] -> [B, T, d]
        weights = []
        for block, head_mask in zip(self.blocks, masks, strict=True):
            x, of_layer = block(
                x, key_mask=key_mask, causal=self.causal, head_mask=head_mask,
                need_weights=need_weights,
            )  # fmt: skip
            weights.append(of_layer)
        x = self.final_norm(x)
        logits = {name: readout(x) for name, readout in self.readouts.items()}
        return Answers(logits, weights if need_weights else None)

    def spec(self) -> dict[str, Any]:
        """Return what the model is, without its weights, as plain JSON; `of_spec` builds it again.

        Raises:
            TypeError: a part that isn't attnlib's own, has hooks, or was changed since it was made.
            ValueError: parts that share weights.
        """
        parts.require_plain("the model", self, TransformerModel)
        norm = None
        if not isinstance(self.final_norm, nn.Identity):
            norm = parts.norm_spec("final_norm", self.final_norm)
        readouts = {}
        for name, readout in self.readouts.items():
            parts.require_plain(f"readouts.{name}", readout, nn.Linear)
            readouts[name] = readout.out_features
        spec = {
            "vocabulary_size": self.vocabulary_size,
            "length": self.length,
            "d_model": self.d_model,
            "causal": self.causal,
            "blocks": [parts.block_spec(f"blocks.{i}", b) for i, b in enumerate(self.blocks)],
            "final_norm": norm,
            "readouts": readouts,
            "readout_bias": any(readout.bias is not None for readout in self.readouts.values()),
        }
        parts.require_same_parameters(self, TransformerModel.of_spec(spec, device="meta"))
        return spec

    @staticmethod
    def of_spec(
        spec: Mapping[str, Any],
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "TransformerModel":
        """Build the model that `spec` describes, with new weights.

        Raises:
            TypeError, ValueError: a description with other names in it than `spec` writes, or with
                values that no such model can have.
        """
        parts.require_names("spec", spec, parts.MODEL)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        d, norm = spec["d_model"], spec["final_norm"]
        return TransformerModel(
            spec["vocabulary_size"],
            spec["length"],
            [
                parts.block_of(f"blocks.{i}", block, d, options)
                for i, block in enumerate(checked_list("blocks", spec["blocks"]))
            ],
            spec["readouts"],
            final_norm=nn.Identity()
            if norm is None
            else parts.norm_of("final_norm", norm, d, options),
            causal=spec["causal"],
            readout_bias=spec["readout_bias"],
            **options,
        )

    def extra_repr(self) -> str:
        """Say what isn't seen in the parts when the model is printed."""
        return f"causal={self.causal}"

    def _require_tokens(self, tokens: Tensor) -> None:
        require_tensor("tokens", tokens)
        if tokens.dtype != torch.int64:
            raise TypeError(f"tokens must be ids of dtype torch.int64, got {tokens.dtype}")
        if tokens.dim() != 2:
            raise ValueError(
                f"tokens must have shape [B, T], got {shape_of(tokens)}: "
                "for one sentence [T] add a batch of one with .unsqueeze(0)"
            )
        if not 1 <= tokens.shape[1] <= self.length:
            raise ValueError(
                f"tokens must be 1 to {self.length} per sentence, got shape {shape_of(tokens)}: "
                f"the model has {self.length} positions"
            )
        weight = self.token_embedding.weight
        require_same_device("tokens", tokens, "the model's weights", weight)
        if torch.compiler.is_compiling() or tokens.is_meta or not len(tokens):
            return  # no numbers to look at
        low, high = (int(bound) for bound in tokens.aminmax())
        if low < 0 or high >= self.vocabulary_size:
            raise ValueError(
                f"tokens must be ids from 0 to {self.vocabulary_size - 1}, "
                f"got {low if low < 0 else high}"
            )

    def _checked_head_masks(
        self, head_masks: Sequence[Tensor | None] | Tensor | None
    ) -> Sequence[Tensor | None]:
        """Return a mask or None for each layer."""
        layers = len(self.blocks)
        if head_masks is None:
            return [None] * layers
        if isinstance(head_masks, Tensor) and head_masks.dim() < 2:
            raise ValueError(
                f"head_masks must hold a mask for each of {layers} layers, got one tensor of shape "
                f"{shape_of(head_masks)}: put it into a list"
            )
        masks = checked_list("head_masks", head_masks)
        if len(masks) != layers:
            raise ValueError(
                f"head_masks must hold a mask for each of {layers} layers, got {len(masks)}"
            )
        return masks


def _checked_blocks(blocks: Sequence[TransformerBlock]) -> list[TransformerBlock]:
    """Return blocks as a list, or raise unless they are some, each once, of one width."""
    blocks = checked_list("blocks", blocks)
    if not blocks:
        raise ValueError("blocks must hold at least one, got none")
    for i, block in enumerate(blocks):
        if not isinstance(block, TransformerBlock):
            raise TypeError(
                f"blocks must be attnlib TransformerBlocks, got {type(block).__name__} at {i}"
            )
        if block.d_model != blocks[0].d_model:
            raise ValueError(
                f"blocks must have one width, got d_model={blocks[0].d_model} in the first "
                f"and {block.d_model} at {i}"
            )
        if any(block is other for other in blocks[:i]):
            raise ValueError(
                f"blocks must each stand in one place, got one again at {i}: the places would "
                "share their weights (copy.deepcopy makes another)"
            )
    return blocks


def _require_readouts(readouts: Mapping[str, int]) -> None:
    """Raise unless readouts have sizes, and names that parts of a module can have."""
    if not isinstance(readouts, Mapping):
        raise TypeError(
            "readouts must map a name to its number of answers, such as {'next': 10}, got "
            f"{type(readouts).__name__}"
        )
    if not readouts:
        raise ValueError("readouts must hold at least one, got none")
    for name, size in readouts.items():
        taken = isinstance(name, str) and hasattr(nn.ModuleDict, name)
        if not isinstance(name, str) or not name or "." in name or taken:
            raise ValueError(
                "readouts must have names that a part of a module can have, without a dot and "
                f"not its own, got {name!r}"
            )
        require_positive_int(f"readouts[{name!r}]", size)
