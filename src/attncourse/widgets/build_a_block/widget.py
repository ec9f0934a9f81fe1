"""BuildABlock: which parts a block needs, by measurements of deep stacks of it."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import torch
import traitlets
from torch import Tensor

from attncourse.widgets._base import CourseWidget, Numbers, browser_files, summary_trait
from attncourse.widgets._inputs import require_light
from attncourse.widgets.build_a_block.signal import ORIGIN, measured_signal
from attnlib.checks import (
    require_flag,
    require_floating,
    require_positive_int,
    require_text,
    shape_of,
)

Variant = tuple[bool, Literal["pre", "post"] | None]
NORM_POSITIONS = (None, "pre", "post")
KINDS = ("size", "cosine")
ROUNDING = 1e-4  # by which a cosine computed in float32 may exceed 1


class BuildABlock(CourseWidget):
    """A block's wiring, with switches for residual, norm and depth, beside what was measured.

    The switches pick one of six ways to wire a block. The diagram shows it, and the curves show
    the given measurements of stacks of such blocks: every run a dot, a line through the medians.
    A wiring without measurements has no curve. A signal can be sent up the stack that stands
    there, stop by stop, with its size and the cosine between its tokens after each part of the
    first and the last block: a small stack with random weights, computed here, all wirings of
    which share them. Without a signal, a switch that leads to a wiring without measurements is
    gray, as long as the others lead to all that were measured. For example::

        measured = {
            (False, None): {"gradient": torch.tensor([[1e-2, 3e-2], [2e-21, 5e-21]])},
            (True, "pre"): {"gradient": torch.tensor([[0.3, 0.4], [0.5, 0.9]])},
        }
        BuildABlock([2, 48], measured, panels={"gradient": "size"}, origin="random, seeds 0 and 1")

    Traits that a reader changes:
        residual (bool): whether each sub-layer's result is added to its input.
        norm_position (None, "pre" or "post"): where the norm sits, as in `TransformerBlock`.
        depth (int): the number of blocks, one of depths.
        stop (int): where the signal is, from 0, the tokens that come in; at most 14.

    Args:
        depths: the numbers of blocks at which was measured, at least two, increasing.
        measurements: (residual, norm_position) -> {name of the panel: tensor [depths, runs]}.
            Further names are ignored. A pre-norm stack is drawn with one norm after its last block.
        panels: name of the panel -> its kind. "size": positive numbers on a logarithmic axis,
            healthy from 0.01 to 100; "cosine": from -1 to 1, collapsed at 1.
        origin: where the numbers come from, shown to the reader.
        signal: whether a signal can be sent. It shows how soon tokens become equal, so a page that
            asks for that first leaves it out.
    """

    _esm, _css = browser_files("build_a_block")
    summary = summary_trait(
        "Switches for residual, norm and depth, beside what was measured in stacks of such blocks."
    )

    depths = traitlets.List(traitlets.Int(), read_only=True).tag(sync=True)
    variants = traitlets.List(traitlets.List(), read_only=True).tag(sync=True)
    panels = traitlets.List(traitlets.List(), read_only=True).tag(sync=True)
    runs = traitlets.Int(read_only=True).tag(sync=True)
    values = Numbers("<f8")  # a float32 could not hold 1e-46
    origin = traitlets.Unicode(read_only=True).tag(sync=True)
    has_signal = traitlets.Bool(read_only=True).tag(sync=True)
    signal = Numbers("<f8")
    signal_origin = traitlets.Unicode(ORIGIN, read_only=True).tag(sync=True)
    residual = traitlets.Bool(False).tag(sync=True)
    norm_position = traitlets.Enum(NORM_POSITIONS, None, allow_none=True).tag(sync=True)
    depth = traitlets.Int(1).tag(sync=True)
    stop = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        depths: Sequence[int],
        measurements: Mapping[Variant, Mapping[str, Tensor]],
        *,
        panels: Mapping[str, Literal["size", "cosine"]],
        origin: str = "as given",
        signal: bool = True,
    ) -> None:
        depths = _checked_depths(depths)
        _require_panels(panels)
        require_text("origin", origin)
        require_flag("signal", signal)
        values = _checked_measurements(measurements, len(depths), panels)
        size = 2 * values.numel()  # float64 weighs as much as two float32
        require_light(f"measurements {shape_of(values)}", size, "keep fewer depths or runs")
        super().__init__(
            depths=depths,
            variants=[list(variant) for variant in measurements],
            panels=[list(panel) for panel in panels.items()],
            runs=values.shape[-1],
            values=values,
            origin=origin,
            has_signal=signal,
            signal=measured_signal(tuple(sorted({1, *depths}))) if signal else b"",
            depth=depths[0],
        )

    def __repr__(self) -> str:
        wirings = f"{len(self.variants)} of 6 wirings measured"
        return f"BuildABlock(depths {self.depths}, {wirings}, {self.runs} runs each)"


def _checked_depths(depths: Sequence[int]) -> list[int]:
    depths = list(depths)
    for depth in depths:
        require_positive_int("every depth", depth)
    if len(depths) < 2 or any(a >= b for a, b in pairwise(depths)):
        raise ValueError(f"depths must be at least two, each larger than the last, got {depths}")
    return [int(depth) for depth in depths]


def _require_panels(panels: Mapping[str, str]) -> None:
    if not isinstance(panels, Mapping):
        raise TypeError(
            f"panels must map names to kinds, got {type(panels).__name__}: "
            'for example {"cosine between tokens": "cosine"}'
        )
    if not panels:
        raise ValueError("panels must name at least one measurement, got none")
    for name, kind in panels.items():
        if kind not in KINDS:
            raise ValueError(f'panels[{name!r}] must be "size" or "cosine", got {kind!r}')


def _checked_measurements(
    measurements: Mapping[Variant, Mapping[str, Tensor]], N: int, panels: Mapping[str, str]
) -> Tensor:
    """Return [variants, panels, depths, runs] as float64, or raise naming what can't be shown."""
    if not isinstance(measurements, Mapping) or not measurements:
        raise ValueError(
            "measurements must map at least one (residual, norm_position) to its panels, "
            f"got {measurements!r}"
        )
    rows = []
    for variant, panels_of in measurements.items():
        if not isinstance(variant, tuple) or len(variant) != 2 or not _is_variant(*variant):
            raise TypeError(
                "keys of measurements must be (residual, norm_position), a bool and one of "
                f'"pre", "post" and None, got {variant!r}'
            )
        if not isinstance(panels_of, Mapping):
            raise TypeError(
                f"measurements[{variant}] must map names of panels to tensors, "
                f"got {type(panels_of).__name__}"
            )
        row = []
        for panel, kind in panels.items():
            name = f"measurements[{variant}][{panel!r}]"
            if panel not in panels_of:
                raise ValueError(f"{name} is missing: there is only {sorted(panels_of)}")
            row.append(_checked_panel(name, panels_of[panel], N, kind))
        rows.append(row)
    shapes = {tuple(panel.shape) for row in rows for panel in row}
    if len(shapes) > 1:
        runs = sorted({shape[1] for shape in shapes})
        raise ValueError(f"measurements must have the same number of runs everywhere, got {runs}")
    return torch.stack([torch.stack(row) for row in rows])


def _is_variant(residual: object, norm_position: object) -> bool:
    return isinstance(residual, bool) and norm_position in NORM_POSITIONS


def _checked_panel(name: str, value: Tensor, N: int, kind: str) -> Tensor:
    """Return one measurement as float64 [N, runs] on the CPU, or raise if it can't be drawn."""
    require_floating(name, value)
    if value.dim() != 2 or len(value) != N or value.shape[1] == 0:
        raise ValueError(
            f"{name} must have shape [{N}, runs], one row a depth, got {shape_of(value)}"
        )
    value = value.detach().to("cpu", torch.float64)
    if not torch.isfinite(value).all():
        raise ValueError(f"{name} must be finite: a stack that overflows is measured in float64")
    if kind == "size" and value.min() <= 0:
        raise ValueError(
            f"{name} must be above 0 for its logarithmic axis, got {value.min().item()}: "
            "a gradient that underflows to 0 is measured in float64"
        )
    if kind == "cosine" and value.abs().max() > 1 + ROUNDING:
        raise ValueError(f"{name} must be from -1 to 1, got {value.abs().max().item()}")
    return value
