"""CacheCalculator: how many bytes the keys and values of a generation take."""

from collections.abc import Sequence
from typing import NamedTuple

import traitlets

from attncourse.widgets._base import CourseWidget, browser_files, summary_trait
from attncourse.widgets._inputs import require_one_of, require_within
from attnlib.checks import checked_list, divisors_of, require_count, require_positive_int

WIDEST = 512  # head
WIDEST_LATENT = 4 * WIDEST  # DeepSeek-V2's rule for the widest head
BYTES = (4, 2, 1)  # per number: 32 bits, 16, 8
MOST = {
    "layers": 128,
    "num_heads": 128,
    "num_kv_heads": 128,
    "d_k": WIDEST,
    "tokens": 2**20,
    "sequences": 128,
    "memory": 1024,  # GiB
}


class CachedModel(NamedTuple):
    """What a model's cache is made of, and where that is published."""

    name: str
    layers: int
    num_heads: int
    num_kv_heads: int
    d_k: int
    latent: tuple[int, ...]  # d_c, d_R; none where keys and values themselves are kept
    tokens: int  # the longest context it was made for
    source: str


GPT_2 = "Radford et al. 2019, Table 2, and OpenAI's model.py"
GPT_3 = "Brown et al. 2020, arXiv:2005.14165, Table 2.1"
LLAMA_2 = "Touvron et al. 2023, arXiv:2307.09288, Table 1, and the model's config.json"
LLAMA_3 = "Llama Team 2024, arXiv:2407.21783, Table 3"
FALCON = "Almazrouei et al. 2023, arXiv:2311.16867, and the model's config.json"
DEEPSEEK = "DeepSeek-AI 2024, arXiv:2405.04434, section 3.1.2"
# name, layers, query heads, key heads, d_k, latent, tokens, source
MODELS = (
    CachedModel("GPT-2 small", 12, 12, 12, 64, (), 1024, GPT_2),
    CachedModel("GPT-3 175B", 96, 96, 96, 128, (), 2048, GPT_3),
    CachedModel("Llama 2 7B", 32, 32, 32, 128, (), 4096, LLAMA_2),
    CachedModel("Llama 2 70B", 80, 64, 8, 128, (), 4096, LLAMA_2),
    CachedModel("Llama 3.1 8B", 32, 32, 8, 128, (), 2**17, LLAMA_3),
    CachedModel("Falcon 7B", 32, 71, 1, 64, (), 2048, FALCON),
    CachedModel("DeepSeek-V2", 60, 128, 128, 128, (512, 64), 2**17, DEEPSEEK),
)


class CacheCalculator(CourseWidget):
    """The memory that keys and values take while a text is generated, and how heads share it.

    A token leaves `2 * layers * num_kv_heads * d_k` numbers in the cache. Multi-head latent
    attention (MLA) leaves `layers * (d_c + d_R)` instead: a vector of width d_c, from which all
    keys and values of a layer are made again, and a key of width d_R that carries the position
    (DeepSeek-V2, section 2.1). The browser shows what a reader's numbers come to, beside the same
    model with a key head per query head (MHA), with fewer (GQA), with one (MQA) and with a latent
    vector (MLA), and how many sequences a memory holds. The model's parameters need memory of their
    own, which isn't counted. In a notebook::

        calculator = CacheCalculator("Llama 2 70B")
        calculator                                                 # show it
        calculator.bytes_per_token, calculator.bytes_in_all        # 327680, 1342177280
        calculator.heads = [64, 64]                                # if no heads were shared
        calculator.observe(lambda change: print(change["new"]), "tokens")
        CacheCalculator(layers=2, num_heads=4, d_k=16, tokens=64)  # a model of your own

    Traits that a reader changes:
        layers (int): from 1 to 128.
        heads (list of two ints): query heads, from 1 to 128, and key heads, which must divide them.
        d_k (int): the width of a head, from 1 to 512.
        latent (list of ints): empty, or [d_c, d_R], d_c from 1 to 2048 and d_R from 0 to 512; then
            the key heads don't matter.
        tokens (int): of each sequence, from 1 to 2^20.
        sequences (int): at once, from 1 to 128.
        bytes_per_number (int): 4, 2 or 1.
        memory (int): in GiB, from 1 to 1024.

    Args:
        model: one of those whose numbers are known: "GPT-2 small", "GPT-3 175B", "Llama 2 7B",
            "Llama 2 70B", "Llama 3.1 8B", "Falcon 7B" and "DeepSeek-V2". What else is given takes
            the place of its numbers.
        layers, num_heads, num_kv_heads, d_k, latent, tokens: the model's if left out; num_kv_heads
            is num_heads where only that is given.
        sequences, bytes_per_number, memory: at the start.
    """

    _esm, _css = browser_files("cache_calculator")
    summary = summary_trait(
        "How many bytes the keys and values of a generation take, for real models and a reader's "
        "own numbers, with heads that share them or don't."
    )

    models = traitlets.List(traitlets.Dict(), read_only=True).tag(sync=True)
    layers = traitlets.Int(1).tag(sync=True)
    heads = traitlets.List(traitlets.Int(), [1, 1]).tag(sync=True)
    d_k = traitlets.Int(1).tag(sync=True)
    latent = traitlets.List(traitlets.Int(), []).tag(sync=True)
    tokens = traitlets.Int(1).tag(sync=True)
    sequences = traitlets.Int(1).tag(sync=True)
    bytes_per_number = traitlets.Int(2).tag(sync=True)
    memory = traitlets.Int(24).tag(sync=True)

    def __init__(
        self,
        model: str = "GPT-2 small",
        *,
        layers: int | None = None,
        num_heads: int | None = None,
        num_kv_heads: int | None = None,
        d_k: int | None = None,
        latent: Sequence[int] | None = None,
        tokens: int | None = None,
        sequences: int = 1,
        bytes_per_number: int = 2,
        memory: int = 24,
    ) -> None:
        require_one_of("model", model, [known.name for known in MODELS])
        known = next(known for known in MODELS if known.name == model)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        given = {"layers": layers, "num_heads": num_heads, "num_kv_heads": num_kv_heads}
        given |= {"d_k": d_k, "tokens": tokens}
        sizes = {
            name: getattr(known, name) if value is None else value for name, value in given.items()
        }
        sizes |= {"sequences": sequences, "memory": memory}
        for name, size in sizes.items():
            require_positive_int(name, size)
            require_within(name, size, 1, MOST[name])
        require_positive_int("bytes_per_number", bytes_per_number)
        require_one_of("bytes_per_number", bytes_per_number, BYTES)
        heads = [sizes.pop("num_heads"), sizes.pop("num_kv_heads")]
        if heads[0] % heads[1]:
            raise ValueError(
                f"num_kv_heads must divide num_heads={heads[0]}, got {heads[1]}: each key head "
                f"serves as many query heads, so it may be one of {divisors_of(heads[0])}"
            )
        latent = _checked_latent(known.latent if latent is None else latent)
        models = [entry._asdict() | {"latent": list(entry.latent)} for entry in MODELS]
        super().__init__(
            models=models, heads=heads, latent=latent, bytes_per_number=bytes_per_number, **sizes
        )

    @property
    def bytes_per_token(self) -> int:
        """What one token of one sequence leaves in the cache of all layers."""
        per_layer = sum(self.latent) if self.latent else 2 * self.heads[1] * self.d_k
        return self.layers * per_layer * self.bytes_per_number

    @property
    def bytes_in_all(self) -> int:
        """What all tokens of all sequences leave there."""
        return self.bytes_per_token * self.tokens * self.sequences

    def __repr__(self) -> str:
        sharing = f"latent={self.latent}" if self.latent else f"heads={self.heads}"
        return (
            f"CacheCalculator(layers={self.layers}, {sharing}, d_k={self.d_k}, "
            f"tokens={self.tokens}: {self.bytes_in_all} bytes)"
        )


def _checked_latent(latent: Sequence[int]) -> list[int]:
    latent = checked_list("latent", latent)
    for size in latent:
        require_count("each of latent", size)
    if len(latent) not in (0, 2):
        raise ValueError(f"latent must be empty or [d_c, d_R], got {latent}")
    if latent:
        require_within("latent's d_c", latent[0], 1, WIDEST_LATENT)
        require_within("latent's d_R", latent[1], 0, WIDEST)
    return latent
