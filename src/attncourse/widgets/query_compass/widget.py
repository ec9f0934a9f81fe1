"""QueryCompass: turn and stretch a query among keys, and watch its output among the values."""

import math
from collections.abc import Sequence

import traitlets
from torch import Tensor

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import checked_numbers
from attnlib.checks import (
    checked_list,
    checked_texts,
    require_dense,
    require_drawable,
    require_flag,
    require_number,
    require_text,
    shape_of,
)

FEWEST, MOST = 2, 8  # keys: one has nothing to share, more could not be told apart


class QueryCompass(CourseWidget):
    """A query to be dragged in the plane among keys, and its output inside the hull of the values.

    The browser computes weights = softmax(query . key / (temperature * sqrt(2))) and the output,
    the values mixed with these weights. sqrt(2) is the usual sqrt(d_k), which the temperature
    multiplies. In a notebook::

        keys = torch.tensor([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
        values = torch.tensor([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0]])
        compass = QueryCompass(keys, values, query=(-0.15, 0.3))
        compass                                                    # show it
        compass.query = [-1.5, 3.0]                                # ten times longer
        compass.observe(lambda change: print(change["new"]), "query")

    Traits that a reader changes:
        query (list of two floats): where it points.
        temperature (float): above 0; 1 is the usual scale.

    Args:
        keys: [T, 2] with T from 2 to 8.
        values: [T, 2].
        query: two numbers; the first key if left out.
        labels: T names, each for a key and its value.
        temperature: at the start.
        origin: where keys and values come from, shown to the reader: "hand-built".
        goals: labels of keys that a reader is to give the largest weight, one after the other. Each
            says its weight, and whether it was reached.
        goal_weight: what such a weight has to exceed, from 0 to 1 (not included).
        details: False leaves the two planes alone, for a reader who meets them first: no formula,
            no temperature, no buttons, no table, and nothing that tells where the output goes.
    """

    _esm, _css = browser_files("query_compass")
    summary = summary_trait(
        "A query to drag among keys, its weights, and its output inside the hull of the values."
    )

    k, v = Numbers(), Numbers()
    T = traitlets.Int(read_only=True).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    details = traitlets.Bool(read_only=True).tag(sync=True)
    goals = traitlets.List(traitlets.Int(), read_only=True).tag(sync=True)
    goal_weight = traitlets.Float(read_only=True).tag(sync=True)
    query = traitlets.List(traitlets.Float()).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)

    def __init__(
        self,
        keys: Tensor,
        values: Tensor,
        *,
        query: Sequence[float] | Tensor | None = None,
        labels: Sequence[str] | None = None,
        temperature: float = 1.0,
        origin: str = "as given",
        details: bool = True,
        goals: Sequence[str] = (),
        goal_weight: float = 0.0,
    ) -> None:
        keys, values = _checked_points("keys", keys), _checked_points("values", values)
        T = len(keys)
        if not FEWEST <= T <= MOST:
            raise ValueError(f"keys must be {FEWEST} to {MOST} points, got {T}")
        if len(values) != T:
            raise ValueError(f"values must be one for each of the {T} keys, got {len(values)}")
        labels = [] if labels is None else checked_texts("labels", labels)
        if labels and len(labels) != T:
            raise ValueError(f"labels must be one for each of the {T} keys, got {len(labels)}")
        require_text("origin", origin)
        require_flag("details", details)
        goals = checked_texts("goals", goals) if goals else []
        for goal in goals:
            if labels.count(goal) != 1:
                raise ValueError(f"each of goals must be the label of one key, got {goal!r}")
        require_number("goal_weight", goal_weight)
        if not 0 <= goal_weight < 1:
            raise ValueError(f"goal_weight must be from 0 to 1, and less than 1, got {goal_weight}")
        query = keys[0] if query is None else query
        if isinstance(query, Tensor):
            require_drawable("query", query)
            query = query.tolist()
        query = checked_list("query", query)
        for number in query:
            require_number("each of query", number)
        if len(query) != 2 or not all(map(math.isfinite, query)):
            raise ValueError(f"query must be two finite numbers, got {query}")
        require_number("temperature", temperature)
        if not 0 < temperature < math.inf:
            raise ValueError(
                f"temperature must be above 0 and finite, got {temperature}: as it goes to 0, the "
                "best key takes everything; 0 itself would divide by zero"
            )
        texts = {"labels": labels, "origin": origin, "details": details}
        texts |= {"goals": [labels.index(goal) for goal in goals], "goal_weight": goal_weight}
        start = {"query": query, "temperature": temperature}
        super().__init__(k=keys, v=values, T=T, **texts, **start)

    def __repr__(self) -> str:
        return f"QueryCompass({self.T} keys, query={self.query}, temperature={self.temperature:g})"


def _checked_points(name: str, value: Tensor) -> Tensor:
    """Return points in the plane as float32 [T, 2] on the CPU, or raise if they aren't that."""
    require_dense(name, value)
    if value.dim() != 2 or value.shape[1] != 2:
        raise ValueError(f"{name} must be points in the plane [T, 2], got {shape_of(value)}")
    return checked_numbers(name, value)
