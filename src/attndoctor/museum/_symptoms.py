"""The symptoms of bugs, measured on the exhibits.

Each exhibit is built beside the right attention, with the same parameters, and both are run. The
text beside this file groups symptoms as a visitor would complain of them, the most telling first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attndoctor.museum._exhibit import Exhibit
from attndoctor.museum.steps import SteppedAttention
from attndoctor.support.texts import read_texts
from attndoctor.support.torch_settings import usual_settings
from attnlib.attention import MultiHeadAttention
from attnlib.cache import KVCache
from attnlib.masks import causal_mask, padding_mask

B, T, D, H = 4, 6, 64, 4  # as many samples as heads, and heads of 16 numbers
TOLERANCE = 1e-4
MUCH = 0.1  # of a row, which is 1


@dataclass(frozen=True)
class Specimen:
    """An exhibit beside the right attention, with the same parameters, in evaluation."""

    exhibit: Exhibit
    broken: SteppedAttention
    right: MultiHeadAttention

    def output(self, *tokens: Tensor, **options: Any) -> Tensor:
        """Ask the broken one."""
        return self.broken(*tokens, **options)[0]

    def weights(self, *tokens: Tensor, **options: Any) -> Tensor:
        """Ask the broken one what it shows."""
        _, weights = self.broken(*tokens, **options)
        assert weights is not None
        return weights

    def right_output_and_weights(self, *tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Ask the right one."""
        output, weights = self.right(*tokens, need_weights=True)
        assert weights is not None
        return output, weights


@dataclass(frozen=True, eq=False)
class Symptom:
    """Something that one notices, and how it is measured.

    Attributes:
        group: what is seen, of one or several symptoms. An exhibit hangs with its first one.
        name: as one would complain of it.
        measured: what it means for an exhibit to show it.
        shows: measures it.
    """

    group: str
    name: str
    measured: str
    shows: Callable[[Specimen], bool]

    def __repr__(self) -> str:
        """Return which symptom it is."""
        return f"Symptom({self.name!r})"


def _tokens() -> Tensor:
    return torch.randn(B, T, D)


def _mask_hiding_a_row() -> Tensor:
    mask = causal_mask(T)
    mask[2] = False
    return mask


def _differ(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a - b).abs().max() > TOLERANCE)  # NaN isn't a difference


def _sees_the_future(specimen: Specimen) -> bool:
    """Without padding, or with a mask of real tokens."""
    x = _tokens()
    changed = torch.cat([x[:, :-1], _tokens()[:, -1:]], 1)
    for real in (None, torch.ones(B, T, dtype=torch.bool)):
        before, after = (specimen.output(y, causal=True, key_mask=real) for y in (x, changed))
        if _differ(before[:, :-1], after[:, :-1]):
            return True
    return False


def _gives_nan(specimen: Specimen) -> bool:
    x = _tokens().requires_grad_()
    output = specimen.output(x, mask=_mask_hiding_a_row())
    (gradient,) = torch.autograd.grad(output.square().sum(), x)
    return bool(output.isnan().any() or gradient.isnan().any())


def _raises_an_error(specimen: Specimen) -> bool:
    """In backward, or in half precision where float32 is no trouble."""
    x, mask = _tokens(), causal_mask(T)
    output = specimen.output(x, mask=mask)
    try:
        output.sum().backward()
        specimen.broken.half()(x.half(), mask=mask)
    except RuntimeError:
        return True
    return False


def _forgets_with_a_cache(specimen: Specimen) -> bool:
    x, cache = _tokens(), KVCache()
    at_once = specimen.output(x, causal=True)
    one_by_one = [specimen.output(token, causal=True, cache=cache) for token in x.split(1, 1)]
    return _differ(at_once, torch.cat(one_by_one, 1))


def _leaves_a_matrix_alone(specimen: Specimen) -> bool:
    specimen.output(_tokens(), _tokens()).square().sum().backward()
    module = specimen.broken
    matrices = (module.W_q.weight, module.W_k.weight, module.W_v.weight, module.W_o.weight)
    return any(W.grad is None or not W.grad.any() for W in matrices)


def _excess(specimen: Specimen) -> float:
    """By how much rows favor their favorite more than right ones do, on average."""
    x = torch.randn(16, T, D)
    _, right = specimen.right_output_and_weights(x)
    broken = specimen.weights(x)
    if right.shape != broken.shape:
        return 0.0
    return (broken.amax(-1) / broken.sum(-1) - right.amax(-1)).mean().item()


def _sums_otherwise(specimen: Specimen) -> bool:
    sums = [specimen.weights(_tokens(), causal=causal).sum(-1) for causal in (False, True)]
    return any(_differ(each, torch.ones(B, H, T)) for each in sums)


def _fills_an_empty_row(specimen: Specimen) -> bool:
    weights = specimen.weights(_tokens(), mask=_mask_hiding_a_row())
    return _differ(weights[..., 2, :], torch.zeros(B, H, T))


def _has_another_shape(specimen: Specimen) -> bool:
    return specimen.weights(_tokens()).shape != (B, H, T, T)


def _has_right_maps_only(specimen: Specimen) -> bool:
    x = _tokens()
    output, weights = specimen.right_output_and_weights(x)
    return _differ(output, specimen.output(x)) and torch.allclose(
        weights, specimen.weights(x), atol=TOLERANCE
    )


def _reads_padding(specimen: Specimen) -> bool:
    x, real = _tokens(), padding_mask(torch.tensor([T, T, T - 1, T - 2]), T)
    changed = torch.where(real[..., None], x, _tokens())
    before, after = (specimen.output(tokens, key_mask=real) for tokens in (x, changed))
    return _differ(before[real], after[real])


def _depends_on_neighbors(specimen: Specimen) -> bool:
    """As it is, or once each sample has a mask of its own."""
    x, everything = _tokens(), torch.ones(T, T, dtype=torch.bool)
    masks = torch.stack([causal_mask(T), *[everything] * (B - 1)])
    return _differ(specimen.output(x)[:1], specimen.output(x[:1])) or _differ(
        specimen.output(x, mask=masks)[:1], specimen.output(x[:1], mask=masks[:1])
    )


def _fails_alone(specimen: Specimen) -> bool:
    x = _tokens()
    output, _ = specimen.right_output_and_weights(x)
    is_right = torch.allclose(output, specimen.output(x), atol=TOLERANCE)
    return is_right and specimen.output(x[:1]).shape != output[:1].shape


def _ignores_the_second(specimen: Specimen) -> bool:
    x = _tokens()
    return torch.equal(specimen.output(x, _tokens()), specimen.output(x, _tokens()))


def _takes_masks_for_one(specimen: Specimen) -> bool:
    """The triangle and a window give the same, though the right attention parts them."""
    x, triangle = _tokens(), causal_mask(T)
    window = triangle.triu(-1)
    return torch.equal(specimen.output(x, mask=triangle), specimen.output(x, mask=window))


def _is_random(specimen: Specimen) -> bool:
    specimen.broken.dropout = 0.5
    x = _tokens()
    return _differ(specimen.output(x), specimen.output(x))


def _shows_other_maps_in_training(specimen: Specimen) -> bool:
    specimen.broken.dropout = 0.5
    x = _tokens()
    evaluated = specimen.weights(x)
    specimen.broken.train()
    return _differ(evaluated, specimen.weights(x))


_SHOWS: dict[str, Callable[[Specimen], bool]] = {
    "The loss is too good": _sees_the_future,
    "The loss is NaN": _gives_nan,
    "An error is raised": _raises_an_error,
    "Generated text is nonsense": _forgets_with_a_cache,
    "Loaded weights give nonsense": lambda specimen: specimen.exhibit.only_loaded,
    "A matrix never learns": _leaves_a_matrix_alone,
    "Maps are too sharp": lambda specimen: _excess(specimen) > MUCH,
    "Maps are too flat": lambda specimen: _excess(specimen) < -MUCH,
    "Rows don't sum to 1": _sums_otherwise,
    "Rows of padding look somewhere": _fills_an_empty_row,
    "The weights have another shape": _has_another_shape,
    "The maps are right, the output isn't": _has_right_maps_only,
    "Padding changes the result": _reads_padding,
    "Another mask changes nothing": _takes_masks_for_one,
    "A sample depends on its batch": _depends_on_neighbors,
    "It fails at a batch size of 1": _fails_alone,
    "The second sequence does nothing": _ignores_the_second,
    "Evaluation is random": _is_random,
    "Maps change in training": _shows_other_maps_in_training,
}
SYMPTOMS = tuple(
    Symptom(group, name, measured, _SHOWS[name])
    for group, text in read_texts(__file__).items()
    for name, measured in (line[2:].split(": ", 1) for line in text.splitlines())
)


def symptoms(exhibit: Exhibit) -> tuple[Symptom, ...]:
    """Run an exhibit and return what it shows of `SYMPTOMS`."""
    return tuple(symptom for symptom in SYMPTOMS if _shows(exhibit, symptom))


@cache
def _shows(exhibit: Exhibit, symptom: Symptom) -> bool:
    with usual_settings(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        right = _right()
        broken = exhibit(D, H).eval()
        broken.load_state_dict(right.state_dict())
        try:
            return symptom.shows(Specimen(exhibit, broken, right))
        except RuntimeError:  # it can't be asked
            return False


@cache
def _right() -> MultiHeadAttention:
    module = MultiHeadAttention(D, H).eval()
    for W in (module.W_q, module.W_k, module.W_v, module.W_o):
        torch.nn.init.normal_(W.bias, std=0.5)
    return module
