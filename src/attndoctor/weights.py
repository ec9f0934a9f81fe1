"""Find W_q, W_k, W_v and W_o in a module by names and shapes; copy the reference's into them."""

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import permutations, product
from operator import itemgetter

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from attndoctor.names import PLAIN, bias_named, projection_named
from attndoctor.reference import PROJECTIONS, Sizes
from attnlib.attention import MultiHeadAttention

WeightMap = list["WeightSlice"]
View = Callable[[Tensor], Tensor]
INTO_HEADS = "W_q, W_k, W_v"
NUMBERS = "(d qkv h)"  # how einops would write a packing: number by number, and in each all heads
OF_LETTERS = {"q": "W_q", "k": "W_k", "v": "W_v"}

# The axes of a matrix cut by head, in the orders in which they are tried: h heads, d_k, d.
_PER_HEAD = {"in": ("hdk", "dhk", "hkd", "khd", "dkh", "kdh"), "out": ("hkd", "dhk", "khd", "hdk")}
_WANTED = {"in": "hkd", "out": "dhk"}


@dataclass(frozen=True)
class Layout:
    """How matrices are stored, where names and shapes leave it open.

    packing: of several in one parameter, one after the other ("blocks"), head by head ("heads") or
    number by number ("interleaved"). order: of these, as "kqv"; empty for the order of the name.
    transposed: a square parameter W is used as x @ W, and not as x @ W.T. spread: in which of
    "W_q, W_k, W_v" and "W_o" the numbers of a head stand h apart, "(d h)" in einops.
    """

    packing: str = "blocks"
    order: str = ""
    transposed: bool = True
    spread: tuple[str, ...] = ()

    def order_of(self, letters: str) -> str:
        """Return the order of the projections with these letters in a name."""
        return self.order if set(self.order) == set(letters) else letters


@dataclass(frozen=True)
class WeightSlice:
    """Some rows of one of the reference's parameters, and where a module has them.

    ours: the reference's parameter, as "W_q.weight". rows: of it. theirs: the module's parameter.
    select: its part that holds these rows, a view. order: of all projections in that parameter.
    guessed: it is a square raw parameter, which may be used either way. whole: the shape of the
    reference's parameter if the module has only its first rows and columns, for all heads.
    """

    ours: str
    rows: slice
    theirs: str
    select: View
    order: str = ""
    guessed: bool = False
    whole: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Matrix:
    """A parameter that may hold projections.

    view: brings the weight to [out, in], or to [..., in]. parts: 3 if a first axis counts the
    projections in it. of_slices: it is [d_k, d_k], for one head's part of the tokens.
    """

    name: str
    role: str
    weight: str
    bias: str | None
    view: View
    out: int
    parts: int = 1
    guessed: bool = False
    of_slices: bool = False


# --- copying -------------------------------------------------------------------------------------


def fill(module: nn.Module, weight_map: WeightMap, reference: MultiHeadAttention) -> None:
    """Copy the reference's weights into a module."""
    with torch.no_grad():
        for entry in weight_map:
            source = reference.get_parameter(entry.ours)[entry.rows]
            target = entry.select(module.get_parameter(entry.theirs))
            if entry.whole:
                source = source[tuple(slice(length) for length in target.shape)]
            target.copy_(source.reshape(target.shape))


def collect(
    module: nn.Module, weight_map: WeightMap, numbers: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Bring numbers of a module's parameters (gradients) to the reference's shapes."""
    found: dict[str, list[Tensor]] = {}
    for entry in sorted(weight_map, key=lambda entry: entry.rows.start or 0):
        part = entry.select(numbers[entry.theirs])
        if entry.whole:
            ends = zip(reversed(entry.whole), reversed(part.shape), strict=True)
            part = F.pad(part, [n for whole, length in ends for n in (0, whole - length)])
        if entry.ours.endswith("bias"):
            part = part.reshape(-1)
        elif entry.ours == "W_o.weight":  # [d, h, d_k] -> [d, d]
            part = part.reshape(len(part), -1)
        else:  # [h, d_k, d] -> [d, d]
            part = part.reshape(-1, part.shape[-1])
        found.setdefault(entry.ours, []).append(part)
    return {ours: torch.cat(parts) if parts[1:] else parts[0] for ours, parts in found.items()}


# --- finding -------------------------------------------------------------------------------------


def own_weights(module: nn.Module) -> WeightMap:
    """Return the weight map of a module that names its parameters as attnlib does."""
    names = [f"{W}.{kind}" for W in PROJECTIONS for kind in ("weight", "bias")]
    there = dict(module.named_parameters())
    return [WeightSlice(name, slice(None), name, _all) for name in names if name in there]


def find_weights(module: nn.Module, sizes: Sizes, layout: Layout | None = None) -> WeightMap | None:
    """Find the projections by their usual names and shapes; None if they aren't all there."""
    layout = layout or Layout()
    finder = _Finder(sizes, layout)
    matrices = list(_matrices(module, sizes, layout))
    named = {matrix.role for matrix in matrices}
    weight_map = [entry for matrix in matrices for entry in finder.slices(matrix, named)]
    weight_map += finder.raw_biases(module)
    found = {entry.ours.split(".")[0] for entry in weight_map if entry.ours.endswith("weight")}
    if any(entry.whole for entry in weight_map) and "W_o" not in found:
        return None  # nothing else tells that these layers are of one head's width
    each_once = len({(entry.ours, entry.rows.start) for entry in weight_map}) == len(weight_map)
    return weight_map if found >= {"W_q", "W_k", "W_v"} and each_once else None


class _Finder:
    """Cuts matrices of these sizes, stored in one layout, into the projections in them."""

    def __init__(self, sizes: Sizes, layout: Layout) -> None:
        self.sizes, self.layout = sizes, layout
        keys = sizes.d_k * sizes.num_kv_heads
        self.widths = {"W_q": sizes.all_heads, "W_k": keys, "W_v": keys, "W_o": sizes.d_model}

    def slices(self, matrix: _Matrix, named: set[str]) -> Iterator[WeightSlice]:
        """Yield the projections in a matrix; `named` are those in any name."""
        d_k, role = self.sizes.d_k, matrix.role
        if role == PLAIN:  # its width says which one it is, unless another layer is called that
            packed_width = self.widths["W_q"] + 2 * self.widths["W_k"]
            role = {self.sizes.d_model: "W_o", packed_width: "qkv"}.get(matrix.out, PLAIN)
            role = PLAIN if role in named else role
        if matrix.of_slices:
            whole = (self.widths[role], self.sizes.d_model)
            for entry in self._slice(matrix, role, slice(None), _all):
                yield replace(entry, whole=whole[:1] if entry.ours.endswith("bias") else whole)
        elif role in self.widths and matrix.out == self.widths[role]:
            yield from self._slice(matrix, role, slice(None), _all)
        elif role in self.widths and "." in matrix.name and matrix.out == d_k:  # a list of heads
            parts = reversed(matrix.name.split("."))
            head = next((int(part) for part in parts if part.isdigit()), 0)
            yield from self._slice(matrix, role, slice(head * d_k, (head + 1) * d_k), _all)
        elif set(role) <= set(OF_LETTERS):
            order, names = self._ordered(role)
            if matrix.out != sum(self.widths[name] for name in names):
                return
            for i, (name, select) in enumerate(self._packed(names)):
                select = itemgetter(i) if matrix.parts > 1 else select
                yield from self._slice(matrix, name, slice(None), select, order)

    def raw_biases(self, module: nn.Module) -> Iterator[WeightSlice]:
        """Yield the biases that are raw parameters."""
        for name, numbers in _raw_parameters(module).items():
            role = bias_named(name.split(".")[-1])
            width, d_k = self.widths.get(role or "", 0), self.sizes.d_k
            cut = (width // d_k, d_k)  # by heads
            if tuple(numbers.shape) in ((width,), cut, (cut[0], 1, d_k), (1, *cut)):
                yield WeightSlice(f"{role}.bias", slice(None), name, _all)
            elif role and set(role) <= set(OF_LETTERS) and numbers.dim() == 1:
                order, names = self._ordered(role)
                if len(numbers) == sum(self.widths[W] for W in names):
                    for W, select in self._packed(names):
                        yield WeightSlice(f"{W}.bias", slice(None), name, select, order)

    def _ordered(self, letters: str) -> tuple[str, list[str]]:
        order = self.layout.order_of(letters)
        return order, [OF_LETTERS[letter] for letter in order]

    def _slice(
        self, matrix: _Matrix, W: str, rows: slice, select: View, order: str = ""
    ) -> Iterator[WeightSlice]:
        """Yield where one projection's weight and bias are."""
        view = _in_turn(*((select, matrix.view) if matrix.parts > 1 else (matrix.view, select)))
        if W != "W_o" and INTO_HEADS in self.layout.spread:
            over_heads = partial(_spread_rows, self.sizes.d_k)
            view, select = (_in_turn(one, over_heads) for one in (view, select))
        if W == "W_o" and "W_o" in self.layout.spread:
            view = _in_turn(view, partial(_spread_columns, self.sizes.d_k))
        yield WeightSlice(f"{W}.weight", rows, matrix.weight, view, order, matrix.guessed)
        if matrix.bias:
            yield WeightSlice(f"{W}.bias", rows, matrix.bias, select, order)

    def _packed(self, names: list[str]) -> Iterator[tuple[str, View]]:
        """Yield where each of several projections is in one parameter."""
        packing, groups, start = self.layout.packing, self.sizes.num_kv_heads, 0
        widths = [self.widths[name] for name in names]
        if packing != "heads" and len(set(widths)) > 1:
            packing = "blocks"
        for i, (name, width) in enumerate(zip(names, widths, strict=True)):
            stop = start + width
            if packing == "heads":
                select: View = partial(
                    _of_each_group, groups, slice(start // groups, stop // groups)
                )
            elif packing == "blocks":
                select = itemgetter(slice(start, stop))
            elif packing == NUMBERS:
                select = partial(_of_each_number, groups, len(names), i)
            else:
                select = itemgetter(slice(i, None, len(names)))
            start = stop
            yield name, select


def packed(weight_map: WeightMap) -> str:
    """Return the letters of the projections that share one parameter, in their order."""
    return next((entry.order for entry in weight_map if entry.order), "")


def guessed(weight_map: WeightMap) -> tuple[str, ...]:
    """Return the names of the parameters that may be used as x @ W or as x @ W.T."""
    return tuple(dict.fromkeys(entry.theirs for entry in weight_map if entry.guessed))


def layouts(weight_map: WeightMap, packing: str | None, transposed: bool | None) -> list[Layout]:
    """Return the layouts that these weights may have, the usual first, given what is known."""
    order = packed(weight_map)
    packings = [packing] if packing else ["blocks", "heads", "interleaved"] if order else ["blocks"]
    orders = [order, *map("".join, permutations(order))] if order else [""]
    either = transposed is None and guessed(weight_map)
    ways = [True, False] if either else [transposed is not False]
    found = [
        Layout(packing, order, way)
        for order, packing, way in product(dict.fromkeys(orders), packings, ways)
    ]
    if not weight_map or any(entry.whole for entry in weight_map):
        return found
    spread = [
        Layout("blocks", orders[0], way, spread)
        for way, spread in product(ways, ((INTO_HEADS, "W_o"), (INTO_HEADS,), ("W_o",)))
        if packing in (None, "blocks")
    ]
    if order and packing is None:
        named = dict.fromkeys((order, "".join(sorted(order, key="qkv".index))))
        spread += [
            Layout(NUMBERS, order, ways[0], spread) for order in named for spread in ((), ("W_o",))
        ]
    return found + spread


def _matrices(module: nn.Module, sizes: Sizes, layout: Layout) -> Iterator[_Matrix]:
    """Yield the layers and raw parameters that may be projections."""
    for name, (layer, role) in _named_layers(module).items():
        transposed = uses_transposed(layer) if role else None
        if not role or transposed is None:
            continue
        weight: Tensor = layer.get_parameter("weight")
        out, taken = weight.shape[:2] if not transposed else weight.shape[1::-1]
        d, d_k, heads = sizes.d_model, sizes.d_k, sizes.all_heads
        of_slices = role in INTO_HEADS.split(", ") and (out, taken) == (d_k, d_k) != (d, d)
        if of_slices or taken in {"W_o": (heads,), PLAIN: (d, heads)}.get(role, (d,)):  # or others'
            bias = f"{name}.bias" if getattr(layer, "bias", None) is not None else None
            view = partial(_flat, transposed)
            yield _Matrix(name, role, f"{name}.weight", bias, view, out, of_slices=of_slices)
    yield from _raw_matrices(module, sizes, layout)


def _named_layers(module: nn.Module) -> dict[str, tuple[nn.Module, str | None]]:
    """Return the layers with a matrix, and the projection that each is named for."""
    layers = {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(weight := getattr(layer, "weight", None), nn.Parameter)
        and weight.dim() >= 2  # or a convolution of one token at a time
        and all(width == 1 for width in weight.shape[2:])
    }
    roles = {name: _role(name, list(layers)) for name in layers}
    if not {"W_o", PLAIN} & set(roles.values()):  # one is W_o; of several it can't be known which
        roles |= {name: PLAIN for name, role in roles.items() if role is None}
    return {name: (layers[name], role) for name, role in roles.items()}


def uses_transposed(layer: nn.Module) -> bool | None:
    """Try whether a layer computes x @ weight; None if neither that nor x @ weight.T."""
    if type(layer) in (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear):
        return False
    answered, shape = False, layer.get_parameter("weight").shape
    generator = torch.Generator().manual_seed(1)
    for transposed in (False, True) if len(shape) == 2 else ():
        W = torch.randn(shape, generator=generator)
        x = torch.randn(2, W.shape[0 if transposed else 1], generator=generator)
        with suppress(Exception), torch.no_grad():
            tried = copy.deepcopy(layer).eval()
            bias = functional_call(tried, {"weight": W}, x) - (x @ W if transposed else x @ W.T)
            answered = True
            if torch.allclose(bias[0], bias[1], atol=1e-3):
                return transposed
    return None if answered else False


def _role(name: str, all_names: list[str]) -> str | None:
    """Return the projection in a layer's name, from the last part that names one."""
    *above, last = name.split(".")
    role = projection_named(last)
    if role not in (None, PLAIN):
        return role
    parents = [projection_named(part) for part in reversed(above)]
    listed = last.isdigit() and parents and parents[0] in (None, PLAIN, "qkv")
    if listed:  # linears.0 ... linears.3, of the Annotated Transformer; or W_o apart
        owner = name.removesuffix(last)
        siblings = [other for other in all_names if other.rpartition(".")[0] + "." == owner]
        if len(siblings) in (3, 4):
            return PROJECTIONS[siblings.index(name)]
    parent = next((each for each in parents if each not in (None, PLAIN)), None)
    return parent or (PLAIN if PLAIN in (role, *parents) else None)


# --- raw parameters ------------------------------------------------------------------------------


def _raw_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a module and its parts that are no layer's weight or bias."""
    return {
        name: numbers
        for name, numbers in module.named_parameters()
        if name.split(".")[-1] not in ("weight", "bias")
    }


def _raw_matrices(module: nn.Module, sizes: Sizes, layout: Layout) -> Iterator[_Matrix]:
    """Yield the raw parameters that may be projections by name and shape."""
    raw = _raw_parameters(module)
    for name, numbers in raw.items():
        role = _role(name, list(raw))
        if not role or bias_named(name.split(".")[-1]):
            continue
        shape = tuple(numbers.shape)
        letters = set(role) <= set(OF_LETTERS)
        parts = len(role) if letters and shape[0] == len(role) and len(shape) > 2 else 1
        found = _read_matrix(role, shape[1:] if parts > 1 else shape, sizes, layout.transposed)
        if found:
            view, out, guessed = found
            yield _Matrix(name, role, name, None, view, parts * out, parts, guessed)


def _read_matrix(
    role: str, shape: tuple[int, ...], sizes: Sizes, transposed: bool
) -> tuple[View, int, bool] | None:
    """Return how to read a raw parameter as a matrix, its width, and whether that is a guess."""
    d, d_k = sizes.d_model, sizes.d_k
    taken = sizes.all_heads if role == "W_o" else d
    if shape == (taken, taken):
        return (torch.t if transposed else _all), taken, True
    if len(shape) == 2:
        reading = {shape[1]: (_all, shape[0], False), shape[0]: (torch.t, shape[1], False)}
        return reading.get(taken)
    side = "out" if role == "W_o" else "in"
    heads = sizes.num_kv_heads if role in ("W_k", "W_v") else sizes.num_heads
    lengths = {"h": heads, "k": d_k, "d": d}
    for axes in _PER_HEAD[side]:
        if shape == tuple(lengths[axis] for axis in axes):
            order = [axes.index(axis) for axis in _WANTED[side]]
            out = d if side == "out" else heads * d_k
            return partial(torch.permute, dims=order), out, False
    return None


# --- views ---------------------------------------------------------------------------------------


def _in_turn(*views: View) -> View:
    """Return views applied in turn; none of them leaves all numbers."""
    return lambda numbers: reduce(lambda now, view: view(now), views, numbers)


_all = _in_turn()


def _of_each_group(groups: int, rows: slice, numbers: Tensor) -> Tensor:
    return numbers.view(groups, -1, *numbers.shape[1:])[:, rows]


def _of_each_number(num_heads: int, parts: int, i: int, numbers: Tensor) -> Tensor:
    return numbers.view(-1, parts, num_heads, *numbers.shape[1:])[:, i].transpose(0, 1)


def _spread_rows(d_k: int, numbers: Tensor) -> Tensor:
    """Bring rows (d h) to the order (h d): [h, d_k, ...]."""
    if numbers.shape[0] % d_k or numbers.dim() > 2:  # one head, or cut by heads already
        return numbers
    return numbers.unflatten(0, (d_k, -1)).transpose(0, 1)


def _spread_columns(d_k: int, numbers: Tensor) -> Tensor:
    """Bring columns (d h) to the order (h d): [d, h, d_k]."""
    return numbers.unflatten(1, (d_k, -1)).transpose(1, 2) if numbers.dim() == 2 else numbers


def _flat(transposed: bool, numbers: Tensor) -> Tensor:
    return numbers.flatten(1).T if transposed else numbers.flatten(1)
