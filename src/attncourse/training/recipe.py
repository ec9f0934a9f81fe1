"""Recipes: all that decides a training but its seed."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attncourse.tasks import Task
from attnlib.checks import (
    require_count,
    require_flag,
    require_number,
    require_positive_int,
    require_text,
)


@dataclass(frozen=True)
class Recipe:
    """How a model is made and trained; together with a seed it decides every number.

    The optimizer is AdamW (Loshchilov & Hutter 2019) with weight decay on all parameters. Its
    learning rate rises, stays, and falls, see `learning_rate`.

    A repeatable training gives the same bits on every machine: it computes in float64 and rounds
    weights to a grid after each step (see `grid`). Another one computes in float32, about twice as
    fast, and its model has no digest.

    Raises:
        TypeError, ValueError: a value of another type, or one with which nothing could be trained.
    """

    name: str
    task: Task
    model: Mapping[str, Any] = field(default_factory=dict)  # as for `TransformerModel.of_sizes`
    steps: int = 400
    batch: int = 32  # sentences per step
    lr: float = 4e-3  # the highest learning rate
    betas: tuple[float, float] = (0.9, 0.98)  # how slowly AdamW forgets gradients, their squares
    weight_decay: float = 0.01  # share of a parameter per step, times the learning rate
    warmup: int = 50  # steps in which the learning rate rises
    falls_at: float = 0.7  # the share of all steps after which it falls
    ends_at: float = 0.02  # the share of `lr` that is left in the last step
    pool: int | None = None  # sentences, drawn again and again in a new order; None: fresh ones
    held_out: int = 1000  # sentences for evaluation
    repeatable: bool = True

    def __post_init__(self) -> None:
        require_text("name", self.name)
        if not isinstance(self.task, Task):
            raise TypeError(f"task must be one of attncourse.tasks, got {type(self.task).__name__}")
        if not isinstance(self.model, Mapping):
            raise TypeError(
                "model must map options of TransformerModel.of_sizes to values, got "
                f"{type(self.model).__name__}"
            )
        for name in ("steps", "batch", "held_out"):
            require_positive_int(name, getattr(self, name))
        require_count("warmup", self.warmup)
        require_flag("repeatable", self.repeatable)
        if self.pool is not None:
            require_positive_int("pool", self.pool)
        if not isinstance(self.betas, tuple) or len(self.betas) != 2:
            raise TypeError(f"betas must be two numbers such as (0.9, 0.98), got {self.betas!r}")
        for name in ("lr", "weight_decay", "falls_at", "ends_at"):
            require_number(name, getattr(self, name))
        for name, value in (("falls_at", self.falls_at), ("ends_at", self.ends_at)):
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1, got {value}")
        if not self.lr > 0:
            raise ValueError(f"lr must be above 0, got {self.lr}")
        if self.pool is not None and self.pool < self.batch:
            raise ValueError(
                f"pool must hold a batch at least, got pool={self.pool} and batch={self.batch}"
            )

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        It rises over `warmup` steps, (step + 1) / warmup of `lr`; stays at `lr`; and from step
        `falls_at` x `steps` falls along a straight line, which reaches `ends_at` x `lr` in the last
        step. Where both would apply, the smaller one counts.
        """
        rising = (step + 1) / self.warmup if self.warmup else 1.0
        start, last = self.falls_at * self.steps, self.steps - 1
        gone = min(1.0, max(0.0, step - start) / (last - start)) if last > start else 0.0
        return self.lr * min(1.0, rising, 1.0 - gone * (1.0 - self.ends_at))

    def changed(self, **changes: Any) -> "Recipe":
        """Return the recipe with other values; those of `model` are added to its own.

        Example:
            >>> from attncourse.training import RECIPES
            >>> RECIPES["concord"].changed(model={"num_heads": 1}).model
            {'d_model': 64, 'num_heads': 1}

        Raises:
            TypeError: a `model` that isn't a dict of options, or a name that no recipe has.
        """
        if not isinstance(changes.get("model", {}), Mapping):
            raise TypeError(f"model must be a dict of its options, got {changes['model']!r:.40}")
        model = {**self.model, **changes.pop("model", {})}
        return dataclasses.replace(self, model=model, **changes)

    def as_json(self) -> dict[str, Any]:
        """Return the recipe as plain JSON, the task by its name."""
        values = {own.name: _plain(getattr(self, own.name)) for own in dataclasses.fields(self)}
        values |= {"task": self.task.name, "betas": [_plain(beta) for beta in self.betas]}
        return values | {"model": {name: _plain(value) for name, value in self.model.items()}}


def _plain(value: Any) -> Any:
    """Return an option as JSON has it: a norm by its name, numpy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    return value.__name__ if isinstance(value, type) else value
