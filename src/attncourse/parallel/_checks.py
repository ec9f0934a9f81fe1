"""What can't be split over processes, in words."""

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from attncourse.training import Recipe
from attnlib.attention import MultiHeadAttention
from attnlib.blocks import FeedForward, TransformerBlock
from attnlib.checks import divisors_of, require_count


def require_mesh(mesh: object) -> None:
    """Raise unless a mesh has one dimension."""
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(
            'mesh must be a DeviceMesh, such as init_device_mesh("cpu", (2,)), got '
            f"{type(mesh).__name__}"
        )
    if mesh.ndim != 1:
        raise ValueError(
            f"mesh must have one dimension, got {mesh.ndim}: name the one over which heads are "
            "split, as in mesh['heads']"
        )


def require_recipe(recipe: object) -> None:
    """Raise TypeError unless `recipe` is one."""
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe must be a Recipe, such as RECIPES['names'], got {recipe!r:.40}")


def require_seed(seed: int) -> None:
    """Raise unless a training can have this seed."""
    require_count("seed", seed)
    if seed >= 2**31:
        raise ValueError(f"seed must be below 2^31, got {seed}")


def require_splittable(module: nn.Module, processes: int) -> None:
    """Raise unless each of some processes can take an equal share of each layer in a module."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch module, got {type(module).__name__}")
    parts = dict(module.named_modules())
    if not any(isinstance(part, MultiHeadAttention) for part in parts.values()):
        raise ValueError(
            f"module must have an attnlib MultiHeadAttention inside, got {type(module).__name__}"
        )
    for path, part in parts.items():
        place = f"{path}." if path else ""
        if isinstance(part, MultiHeadAttention):
            _require_shares(f"{place}num_heads", part.num_heads, processes, "heads")
            _require_shares(
                f"{place}num_kv_heads", part.num_kv_heads, processes, "heads of keys and values"
            )
            _require_plain(place, part, ("W_q", "W_k", "W_v", "W_o"))
        elif isinstance(part, FeedForward):
            _require_shares(f"{place}d_ff", part.d_ff, processes, "neurons")
            _require_plain(place, part, ("W_1", "W_2"))
    require_no_dropout(module)


def require_no_dropout(module: nn.Module) -> None:
    """Raise ValueError if processes would each leave out other numbers."""
    for path, part in module.named_modules():
        if isinstance(part, MultiHeadAttention | TransformerBlock) and part.dropout:
            place = f"{path}." if path else ""
            raise ValueError(
                f"{place}dropout must be 0, got {part.dropout}: each process would draw for itself "
                "what is left out"
            )


def _require_shares(name: str, number: int, processes: int, things: str) -> None:
    if number % processes:
        raise ValueError(
            f"{name} must be divisible by the number of processes, got {number} over {processes}: "
            f"each takes as many whole {things}, so processes may be one of {divisors_of(number)}"
        )


def _require_plain(place: str, part: nn.Module, names: tuple[str, ...]) -> None:
    for name in names:
        layer = getattr(part, name)
        if type(layer) is not nn.Linear:
            raise TypeError(f"{place}{name} must be an nn.Linear, got {type(layer).__name__}")
        if isinstance(layer.weight, DTensor):
            raise ValueError(f"{place}{name} must be whole, got one that is split already")
