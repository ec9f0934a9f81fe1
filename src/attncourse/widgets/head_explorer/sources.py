"""Where the maps of a HeadExplorer come from: queries and keys with a name and an origin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from attncourse.widgets._inputs import checked_queries_and_keys, checked_rows
from attncourse.widgets._origins import mask_of_training
from attnlib.attention import MultiHeadAttention
from attnlib.checks import checked_texts, require_divisible, require_text

MOST_RULED_TOKENS = 16  # also the width of a hand-built head: one column for each place
RULES = ("previous token", "same word", "first token")
STRENGTH = 5.0  # the score of the token that a rule wants; all others have 0


@dataclass(frozen=True, eq=False)
class HeadSource:
    """Queries and keys of one sequence, for one tab of a HeadExplorer.

    Attributes:
        name: what stands on the tab: "trained".
        q: projected queries [T, d], all heads side by side.
        k: projected keys [T, d].
        origin: where they come from, shown to the reader: "random (seed 0)", "trained (seed 3)".
        num_heads: the number of heads at the start; if left out, as many as `heads` has names, or
            the largest of 4, 3, 2, 1 that divides d. Of trained ones, what they were trained with.
        heads: what each of those heads is called, if anything.
        rules: whether q and k follow from the names of the heads, as `by_rules` makes them.
    """

    name: str
    q: Tensor
    k: Tensor
    origin: str = "as given"
    num_heads: int | None = None
    heads: Sequence[str] = ()
    rules: bool = False

    @classmethod
    def by_rules(
        cls,
        tokens: Sequence[str],
        rules: Sequence[str] = ("previous token", "same word", "first token"),
        *,
        name: str = "hand-built",
    ) -> Self:
        """Build one head per rule by hand; a reader may then look at words of their own.

        A head is 16 columns wide. Its keys say with a single 1 which token or word this is, and
        its queries ask for one of them, so that the score q k^T / sqrt(16) is 5 for the token that
        the rule wants and 0 for all others. A query that asks for none is 0 and looks at all alike.

        Args:
            tokens: at most 16 strings.
            rules: of "previous token", "same word" (upper and lower case are the same) and "first
                token", each at most once.
            name: what stands on the tab.

        Raises:
            TypeError, ValueError: tokens or rules that aren't as above.
        """
        tokens, rules = checked_texts("tokens", tokens), checked_texts("rules", rules)
        if len(tokens) > MOST_RULED_TOKENS:
            raise ValueError(
                f"tokens must be at most {MOST_RULED_TOKENS} for hand-built heads, got "
                f"{len(tokens)}: each has a column for every place"
            )
        for rule in rules:
            if rule not in RULES:
                raise ValueError(f"rules must be of {sorted(RULES)}, got {rule!r}")
        if len(set(rules)) < len(rules):
            raise ValueError(f"rules must each come once, got {rules}")
        q, k = zip(*(_ruled(rule, tokens) for rule in rules), strict=True)
        together = torch.cat(q, dim=1), torch.cat(k, dim=1)  # [T, 16 * heads]
        return cls(name, *together, origin="hand-built", heads=rules, rules=True)

    @classmethod
    def from_module(
        cls, name: str, module: MultiHeadAttention, x: Tensor, *, origin: str = "as given"
    ) -> Self:
        """Take the queries and keys that an attnlib attention makes of one sequence.

        Args:
            name: what stands on the tab.
            module: its projections W_q and W_k make q and k; the slider starts at its head count.
                Not one with grouped heads, whose k has fewer columns than q: there is no slider
                that cuts both alike.
            x: the module's input, [T, d] or [1, T, d].
            origin: where the weights come from.

        Raises:
            TypeError: not an attnlib MultiHeadAttention, or x not a floating point tensor.
            ValueError: x of another shape, a module with grouped heads or other keys than x.
        """
        rows = checked_rows(
            module, x, "pass its projected queries and keys to HeadExplorer(tokens, q, k)"
        )
        _require_plain_heads(module)
        with torch.no_grad():
            q, k = module.W_q(rows), module.W_k(rows)  # [T, d] -> [T, d]
        return cls(name, q, k, origin, module.num_heads)

    def checked(self, T: int, causal: bool) -> tuple[Tensor, Tensor, dict[str, object]]:
        """Return q and k as float32 [T, d], and what the browser gets beside them, or raise."""
        for name in ("name", "origin"):
            require_text(name, getattr(self, name))
        q, k = checked_queries_and_keys(self.q, self.k, T)
        d = q.shape[1]
        heads = checked_texts("heads", self.heads) if len(self.heads) else []
        num_heads, mask = self.num_heads, mask_of_training(self.origin, causal)
        if num_heads is None:
            if mask is not None and not heads:
                raise ValueError(
                    "num_heads must be given where origin claims a training, got "
                    f"origin={self.origin!r}: with how many heads was it trained?"
                )
            num_heads = len(heads) or max(h for h in (1, 2, 3, 4) if d % h == 0)
        require_divisible(d, num_heads)
        if heads and len(heads) != num_heads:
            raise ValueError(f"heads must name all {num_heads} heads, got {len(heads)} names")
        entry = {"name": self.name, "origin": self.origin, "d": d, "num_heads": num_heads}
        return q, k, entry | {"heads": heads, "rules": self.rules, "causal": mask}


def _ruled(rule: str, tokens: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return q and k [T, 16] whose scores are `STRENGTH` where the rule wants, 0 elsewhere."""
    places = list(range(len(tokens)))
    words = [token.lower() for token in tokens]
    numbers = [words.index(word) for word in words]
    columns: dict[str, tuple[Sequence[int | None], Sequence[int | None]]] = {
        "previous token": ([None, *places[:-1]], places),
        "same word": (numbers, numbers),
        "first token": ([0 for _ in tokens], places),
    }
    wanted, own = columns[rule]
    return STRENGTH * MOST_RULED_TOKENS**0.5 * _one_hot(wanted), _one_hot(own)


def _one_hot(columns: Sequence[int | None]) -> Tensor:
    """Return one row per token, [T, 16], with a 1 in its column; all 0 where there is none."""
    rows = torch.zeros(len(columns), MOST_RULED_TOKENS)
    for row, column in zip(rows, columns, strict=True):
        if column is not None:
            row[column] = 1.0
    return rows


def _require_plain_heads(module: MultiHeadAttention) -> None:
    """Raise ValueError unless q and k, made of one x, hold all that a module's scores depend on."""
    h, kv = module.num_heads, module.num_kv_heads
    if kv != h:
        raise ValueError(
            f"module must have as many heads for keys as for queries, got num_kv_heads={kv} and "
            f"num_heads={h}: the slider cuts q and k alike. To see these {h} heads, give each its "
            f"own copy of the keys: k.unflatten(-1, ({kv}, -1)).repeat_interleave({h // kv}, dim=1)"
            ".flatten(1), and pass that to HeadExplorer(tokens, q, k, num_heads="
            f"{h})"
        )
    if module.kdim != module.d_model:
        raise ValueError(
            f"module must take its keys from x, got kdim={module.kdim} and "
            f"d_model={module.d_model}: pass its projected queries and keys to HeadExplorer"
        )
    if module.rotary is not None:
        raise ValueError(
            f"module must have no rotary positions, got {module.rotary}: the slider cuts q and k "
            "anew for each number of heads, and each cut would have to be turned in its own way. "
            f"To see these {h} heads, turn each head's queries and keys with module.rotary, and "
            f"pass them side by side to HeadExplorer(tokens, q, k, num_heads={h})"
        )
