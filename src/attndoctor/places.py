"""Where a module keeps W_q, W_k, W_v and W_o: found by the names that public code gives them."""

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product

import torch
from torch import Tensor, nn
from torch.func import functional_call

from attndoctor.bare import bias_fits, matrix_as
from attndoctor.names import PLAIN, bias_named, projection_named
from attndoctor.reference import Sizes
from attnlib.attention import MultiHeadAttention

Places = list["Place"]
View = Callable[[Tensor], Tensor]
Pieces = list[tuple[str, slice, View]]  # W, its rows, and where they stand
INTO_HEADS = "W_q, W_k, W_v"
NUMBERS = "(d qkv h)"  # how einops would write a packing: number by number, and in each all heads
OF_LETTERS = {"q": "W_q", "k": "W_k", "v": "W_v"}


@dataclass(frozen=True)
class Layout:
    """What neither names nor shapes tell of how matrices are stored.

    packing: of several in one parameter, one after the other ("blocks"), head by head ("heads") or
    number by number ("interleaved"). order: which of them comes first, as "kqv"; as its name has it
    if left out. turned: whether a square parameter W is used as x @ W, and not as a layer's weight.
    spread: where the numbers of a head don't stand side by side, but as far apart as there are
    heads, "(d h)" in the language of einops: "W_q, W_k, W_v", "W_o", both or neither.
    """

    packing: str = "blocks"
    order: str = ""
    turned: bool = True
    spread: tuple[str, ...] = ()

    def order_of(self, letters: str) -> str:
        """Return the order of what is named by these letters."""
        return self.order if set(self.order) == set(letters) else letters


@dataclass(frozen=True)
class Place:
    """Rows of one of the reference's parameters, and where a module has them.

    ours: "W_q.weight" or the like. rows: which of its rows. theirs: the module's parameter.
    select: its part that holds these rows, a view. order: of all that stand in that parameter.
    guessed: whether it is a square parameter without a layer, which may be used either way.
    """

    ours: str
    rows: slice
    theirs: str
    select: View
    order: str = ""
    guessed: bool = False


@dataclass(frozen=True)
class _Matrix:
    """A parameter that may hold projections.

    name: of the layer, or of the parameter if it has none. weight, bias: the parameters' names.
    view: brings the weight to [out, in], or to [..., in]. out: how wide that is. parts: 3 if it
    has an axis in front for the projections in it, before that.
    """

    name: str
    role: str
    weight: str
    bias: str | None
    view: View
    out: int
    parts: int = 1
    guessed: bool = False


def fill(module: nn.Module, places: Places, reference: MultiHeadAttention) -> None:
    """Copy the reference's numbers to their places."""
    with torch.no_grad():
        for place in places:
            source = reference.get_parameter(place.ours)[place.rows]
            target = place.select(module.get_parameter(place.theirs))
            target.copy_(source.reshape(target.shape))


def collect(module: nn.Module, places: Places, numbers: dict[str, Tensor]) -> dict[str, Tensor]:
    """Bring numbers of the module's parameters (gradients) to the reference's shapes."""
    found: dict[str, list[Tensor]] = {}
    for place in sorted(places, key=lambda place: place.rows.start or 0):
        part = place.select(numbers[place.theirs])
        if place.ours.endswith("bias"):
            part = part.reshape(-1)
        elif place.ours == "W_o.weight":  # [d, h, d_k] -> [d, d]
            part = part.reshape(len(part), -1)
        else:  # [h, d_k, d] -> [d, d]
            part = part.reshape(-1, part.shape[-1])
        found.setdefault(place.ours, []).append(part)
    return {ours: torch.cat(parts) if parts[1:] else parts[0] for ours, parts in found.items()}


def own_places(module: nn.Module) -> Places:
    """Return the places in a module that names its parameters as attnlib does."""
    names = [f"{W}.{kind}" for W in ("W_q", "W_k", "W_v", "W_o") for kind in ("weight", "bias")]
    there = dict(module.named_parameters())
    return [Place(name, slice(None), name, _all) for name in names if name in there]


def find_places(module: nn.Module, sizes: Sizes, layout: Layout | None = None) -> Places | None:
    """Find the projections by their usual names and shapes; None if they aren't all there."""
    layout = layout or Layout()
    d, d_k = sizes.d_model, sizes.d_k
    d_q, d_kv = sizes.all_heads, d_k * sizes.num_kv_heads
    widths = {"W_q": d_q, "W_k": d_kv, "W_v": d_kv, "W_o": d}
    places: Places = []
    matrices = list(_matrices(module, sizes, layout))
    named = {matrix.role for matrix in matrices}
    for matrix in matrices:
        role, order = matrix.role, ""
        if role == PLAIN:  # its width says what it is, unless another one is called that
            role = {d: "W_o", d_q + 2 * d_kv: "qkv"}.get(matrix.out, PLAIN)
            role = PLAIN if role in named else role
        if role in widths and matrix.out == widths[role]:
            pieces: Pieces = [(role, slice(None), _all)]
        elif role in widths and "." in matrix.name and matrix.out == d_k:  # one of a list of heads
            parts = reversed(matrix.name.split("."))
            head = next((int(part) for part in parts if part.isdigit()), 0)
            pieces = [(role, slice(head * d_k, (head + 1) * d_k), _all)]
        elif set(role) <= set(OF_LETTERS):
            order = layout.order_of(role)
            names = [OF_LETTERS[letter] for letter in order]
            if matrix.out != sum(widths[name] for name in names):
                continue
            pieces = _packed(names, widths, sizes, layout.packing)
            if matrix.parts > 1:
                pieces = [(name, slice(None), partial(_part, i)) for i, name in enumerate(names)]
        else:
            continue
        for W, rows, select in pieces:
            view = partial(_one_after_other, matrix.view, select)
            if matrix.parts > 1:
                view = partial(_one_after_other, select, matrix.view)
            over_heads = partial(_spread_rows, d_k)
            if W != "W_o" and INTO_HEADS in layout.spread:
                view = partial(_one_after_other, view, over_heads)
                select = partial(_one_after_other, select, over_heads)
            if W == "W_o" and "W_o" in layout.spread:
                view = partial(_one_after_other, view, partial(_spread_columns, d_k))
            places.append(Place(f"{W}.weight", rows, matrix.weight, view, order, matrix.guessed))
            if matrix.bias:
                places.append(Place(f"{W}.bias", rows, matrix.bias, select, order))
    places += _bare_biases(module, sizes, layout, widths)
    found = {place.ours.split(".")[0] for place in places if place.ours.endswith("weight")}
    return places if found >= {"W_q", "W_k", "W_v"} and _each_once(places) else None


def packed(places: Places) -> str:
    """Return the letters of the projections that stand in one parameter, in their order."""
    return next((place.order for place in places if place.order), "")


def guessed(places: Places) -> tuple[str, ...]:
    """Return the names of the parameters that may be used either way."""
    return tuple(dict.fromkeys(place.theirs for place in places if place.guessed))


def layouts(places: Places, packing: str | None, turned: bool | None) -> list[Layout]:
    """Return in which layouts a module with these places may keep its weights, the usual first.

    Its packing, and how it uses bare parameters, may be known.
    """
    order = packed(places)
    packings = [packing] if packing else ["blocks", "heads", "interleaved"] if order else ["blocks"]
    orders = [order, *map("".join, permutations(order))] if order else [""]
    turns = [True, False] if turned is None and guessed(places) else [turned is not False]
    found = [
        Layout(packing, order, turned)
        for order, packing, turned in product(dict.fromkeys(orders), packings, turns)
    ]
    if not places:
        return found
    spread = [
        Layout("blocks", orders[0], turned, spread)
        for turned, spread in product(turns, ((INTO_HEADS, "W_o"), (INTO_HEADS,), ("W_o",)))
        if packing in (None, "blocks")
    ]
    if order and packing is None:
        named = dict.fromkeys((order, "".join(sorted(order, key="qkv".index))))
        spread += [
            Layout(NUMBERS, order, turns[0], spread) for order in named for spread in ((), ("W_o",))
        ]
    return found + spread


def _each_once(places: Places) -> bool:
    seen = [(place.ours, place.rows.start) for place in places]
    return len(set(seen)) == len(seen)


def _matrices(module: nn.Module, sizes: Sizes, layout: Layout) -> Iterator[_Matrix]:
    """Yield the layers and parameters that may be projections."""
    if isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None:
        own = None if module.in_proj_bias is None else "in_proj_bias"
        out, taken = module.in_proj_weight.shape
        if taken == sizes.d_model:
            yield _Matrix("in_proj", "qkv", "in_proj_weight", own, _all, out)
    linears = [
        (name, layer)
        for name, layer in module.named_modules()
        if isinstance(getattr(layer, "weight", None), nn.Parameter) and _is_matrix(layer.weight)
    ]
    roles: dict[str, str | None] = {
        name: _role(name, [other for other, _ in linears]) for name, _ in linears
    }
    nameless = [name for name, role in roles.items() if role is None]
    if not {"W_o", PLAIN} & set(roles.values()):  # one is W_o; of several it can't be known which
        roles |= dict.fromkeys(nameless, PLAIN)
    for name, layer in linears:
        role = roles[name]
        if not role:
            continue
        turned = turned_inside(layer)
        if turned is None:
            continue
        weight = layer.weight.T if turned else layer.weight
        d, heads = sizes.d_model, sizes.all_heads
        if weight.shape[1] not in {"W_o": (heads,), PLAIN: (d, heads)}.get(role, (d,)):
            continue  # it is of other tokens
        bias = f"{name}.bias" if getattr(layer, "bias", None) is not None else None
        view = partial(_turned, turned)
        yield _Matrix(name, role, f"{name}.weight", bias, view, len(weight))
    yield from _bare_matrices(module, sizes, layout)


def turned_inside(layer: nn.Module) -> bool | None:
    """Tell whether a layer uses its weight as x @ weight, as that of transformers' GPT-2 does.

    It is asked; None if it does something else, and False if it can't be asked.
    """
    if type(layer) in (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear):
        return False
    answered, shape = False, layer.get_parameter("weight").shape
    generator = torch.Generator().manual_seed(1)
    for turned in (False, True) if len(shape) == 2 else ():
        W = torch.randn(shape, generator=generator)
        x = torch.randn(2, W.shape[0 if turned else 1], generator=generator)
        with suppress(Exception), torch.no_grad():
            asked = copy.deepcopy(layer).eval()
            bias = functional_call(asked, {"weight": W}, x) - (x @ W if turned else x @ W.T)
            answered = True
            if torch.allclose(bias[0], bias[1], atol=1e-3):
                return turned
    return None if answered else False


def _bare_matrices(module: nn.Module, sizes: Sizes, layout: Layout) -> Iterator[_Matrix]:
    """Yield the parameters that belong to no layer, and may be projections by name and shape."""
    bare = _bare_parameters(module)
    for name, numbers in bare.items():
        role = _role(name, list(bare))
        if not role or bias_named(name.split(".")[-1]):
            continue
        shape = tuple(numbers.shape)
        packed_letters = set(role) <= set(OF_LETTERS)
        parts = len(role) if packed_letters and shape[0] == len(role) and len(shape) > 2 else 1
        found = matrix_as(role, shape[1:] if parts > 1 else shape, sizes, layout.turned)
        if found:
            yield _Matrix(
                name, role, name, None, found.view, parts * found.out, parts, found.guessed
            )


def _bare_biases(
    module: nn.Module, sizes: Sizes, layout: Layout, widths: dict[str, int]
) -> Iterator[Place]:
    """Yield where biases stand that belong to no layer."""
    for name, numbers in _bare_parameters(module).items():
        role = bias_named(name.split(".")[-1])
        if role in widths and bias_fits(numbers, widths[role], sizes):
            yield Place(f"{role}.bias", slice(None), name, _all)
        elif role and set(role) <= set(OF_LETTERS) and numbers.dim() == 1:
            order = layout.order_of(role)
            names = [OF_LETTERS[letter] for letter in order]
            if len(numbers) == sum(widths[W] for W in names):
                for W, rows, select in _packed(names, widths, sizes, layout.packing):
                    yield Place(f"{W}.bias", rows, name, select, order)


def _bare_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a module and its parts that are no layer's weight or bias."""
    of_torch = isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None
    return {
        name: numbers
        for name, numbers in module.named_parameters()
        if name.split(".")[-1] not in ("weight", "bias")
        and not (of_torch and name.startswith("in_proj"))
    }


def _is_matrix(weight: Tensor) -> bool:
    """Tell whether it is a matrix, or a convolution of one token at a time."""
    return weight.dim() >= 2 and all(width == 1 for width in weight.shape[2:])


def _role(name: str, all_names: list[str]) -> str | None:
    """Return what a layer is by its name: by the last part of it that says so."""
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
            return ("W_q", "W_k", "W_v", "W_o")[siblings.index(name)]
    told = next((parent for parent in parents if parent not in (None, PLAIN)), None)
    return told or (PLAIN if PLAIN in (role, *parents) else None)


def _packed(names: list[str], widths: dict[str, int], sizes: Sizes, packing: str) -> Pieces:
    """Say where each of several projections stands in one parameter."""
    pieces: Pieces = []
    start = 0
    num_heads = sizes.num_heads if "W_q" in names else sizes.num_kv_heads
    groups = sizes.num_kv_heads
    for i, name in enumerate(names):
        width = widths[name]
        grouped = len({widths[name] for name in names}) > 1
        if packing == "heads" and grouped:
            total, of_group = (sum(widths[name] for name in names) // groups, width // groups)
            first = start // groups
            select = partial(_of_each_group, groups, total, slice(first, first + of_group))
        elif packing == "blocks" or grouped:
            select = partial(_rows, slice(start, start + width))
        elif packing == NUMBERS:
            select = partial(_of_each_number, num_heads, len(names), i)
        elif packing == "heads":
            select = partial(_of_each_head, num_heads, len(names), i)
        else:
            select = partial(_rows, slice(i, None, len(names)))
        start += width
        pieces.append((name, slice(None), select))
    return pieces


def _all(numbers: Tensor) -> Tensor:
    return numbers


def _rows(rows: slice, numbers: Tensor) -> Tensor:
    return numbers[rows]


def _part(i: int, numbers: Tensor) -> Tensor:
    return numbers[i]


def _of_each_head(num_heads: int, parts: int, i: int, numbers: Tensor) -> Tensor:
    return numbers.view(num_heads, parts, -1, *numbers.shape[1:])[:, i]


def _of_each_group(groups: int, total: int, rows: slice, numbers: Tensor) -> Tensor:
    return numbers.view(groups, total, *numbers.shape[1:])[:, rows]


def _spread_rows(d_k: int, numbers: Tensor) -> Tensor:
    """Bring rows (d h) to the order (h d): [h, d_k, ...]."""
    if numbers.shape[0] % d_k or numbers.dim() > 2:  # one head, or cut by heads already
        return numbers
    return numbers.unflatten(0, (d_k, -1)).transpose(0, 1)


def _spread_columns(d_k: int, numbers: Tensor) -> Tensor:
    """Bring columns (d h) to the order (h d): [d, h, d_k]."""
    return numbers.unflatten(1, (d_k, -1)).transpose(1, 2) if numbers.dim() == 2 else numbers


def _of_each_number(num_heads: int, parts: int, i: int, numbers: Tensor) -> Tensor:
    return numbers.view(-1, parts, num_heads, *numbers.shape[1:])[:, i].transpose(0, 1)


def _turned(turned: bool, numbers: Tensor) -> Tensor:
    matrix = numbers.flatten(1)
    return matrix.T if turned else matrix


def _one_after_other(first: View, second: View, numbers: Tensor) -> Tensor:
    return second(first(numbers))
