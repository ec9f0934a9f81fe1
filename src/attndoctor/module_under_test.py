"""The candidate's modules at several sizes, loaded with the reference's weights, ready to run."""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attndoctor import build, weights
from attndoctor.build import Candidate, copy_of
from attndoctor.call import (
    CALL_MODES,
    Adapter,
    CallMode,
    RandomInputs,
    attnlib_adapter,
    read_signature,
)
from attndoctor.options import CallError, DiagnoseOptions, Load, Steps, error_text, name_list
from attndoctor.probes import SELF_ATTENTION, Probe, run_probe
from attndoctor.reference import (
    PROJECTIONS,
    Answer,
    Pair,
    Setting,
    Sizes,
    agree,
    have_one_shape,
    parts_agree,
    reference,
    side_by_side,
    stepped,
)
from attndoctor.support.texts import Texts
from attndoctor.weights import Layout, WeightMap
from attnlib.attention import MultiHeadAttention

TEXT = Texts(__file__)


@lru_cache(maxsize=1024)  # a diagnosis needs some hundreds, of wide modules a megabyte each
def reference_answer(
    probe: Probe, setting: Setting, takes: frozenset[str], steps: Steps = ()
) -> Answer:
    """Return what the reference answers, or one with some steps replaced."""
    module = stepped(setting, dict(steps)) if steps else reference(setting)
    with attnlib_adapter(module, setting, takes).on() as adapter:
        return run_probe(probe, adapter)


# Some 1,300 pairs of exhibits are tried on a probe, and would drive all else out of that cache.
answer_of_pair = lru_cache(maxsize=8192)(reference_answer.__wrapped__)
SMALL = 512  # d_model * num_heads up to which they are remembered: at most 40 kilobytes each


@dataclass(frozen=True)
class ModuleUnderTest:
    """A candidate's modules, by the names of their sizes, and the reference beside them.

    taken: what the candidate was taken for, in a few words each. random_in_training: two calls in
    training differ though its dropout is 0. rare: its weights have a rare layout.
    """

    candidate: Candidate
    options: DiagnoseOptions
    adapters: dict[str, Adapter]
    taken: tuple[str, ...] = ()
    random_in_training: bool = False
    rare: bool = False

    @property
    def first(self) -> Adapter:
        """The module that is examined."""
        return self.adapters["first"]

    def answer(self, probe: Probe, mode: CallMode = CALL_MODES[0]) -> Answer:
        """Run a probe on all modules that it is for."""
        return _joined(self._answer(probe, adapter, mode) for adapter in self._for(probe))

    def compared(self, probe: Probe, steps: Steps = ()) -> Answer:
        """Return the reference's answers, or those of one with these steps."""
        return _joined(self._reference_answer(probe, one, steps) for one in self._for(probe))

    def behaves_like(self, steps: Steps, probe: Probe, given: Answer, pair: bool = False) -> bool:
        """Return whether the steps of one exhibit or a pair give an answer, with its error."""
        self.options.clock.tick()
        start = 0
        for adapter in self._for(probe):  # one size after the other: most fail on the first
            answer = self._reference_answer(probe, adapter, steps, pair)
            if isinstance(answer, Exception):
                return type(given) is type(answer) and str(given) == str(answer)
            if isinstance(given, Exception):
                continue
            if not agree(given[start : start + len(answer)], answer, probe.tolerance):
                return False
            start += len(answer)
        return not isinstance(given, Exception)

    def right(self, probe: Probe, mode: CallMode = CALL_MODES[0]) -> bool:
        """Return whether its answers to a probe are right, one size after the other."""
        return all(
            agree(
                self._answer(probe, adapter, mode), self._reference_answer(probe, adapter),
                probe.tolerance,
            )
            for adapter in self._for(probe)
        )  # fmt: skip

    def right_when_fresh(self, probe: Probe, mode: CallMode) -> bool:
        """Return whether copies that were never called are right."""
        adapters = {size: one.fresh_copy() for size, one in self.adapters.items()}
        return replace(self, adapters=adapters).right(probe, mode)

    def right_weights(self, probe: Probe) -> bool:
        """Return whether the weights that it returns are right, whatever its outputs are."""
        return parts_agree(self.answer(probe), self.compared(probe), probe.tolerance, part=1)

    def gives_outputs(self, probe: Probe) -> bool:
        """Return whether its outputs have the right shapes, whatever is in them."""
        pairs = side_by_side(self.answer(probe), self.compared(probe))
        return bool(pairs) and all(have_one_shape(a, b) for (a, _), (b, _) in pairs)

    def raises(self, probe: Probe) -> bool:
        """Return whether a probe makes it raise an error."""
        return isinstance(self.answer(probe), Exception)

    def has(self, probe: Probe) -> bool:
        """Return whether there is a module for a probe."""
        return bool(self._for(probe))

    def _for(self, probe: Probe) -> list[Adapter]:
        return [self.adapters[size] for size in probe.sizes if size in self.adapters]

    def _answer(self, probe: Probe, adapter: Adapter, mode: CallMode) -> Answer:
        with adapter.on(mode) as in_mode:
            return run_probe(probe, in_mode)

    def _reference_answer(
        self, probe: Probe, adapter: Adapter, steps: Steps = (), pair: bool = False
    ) -> Answer:
        if self.options.formula:
            steps = tuple(sorted((dict(self.options.formula) | dict(steps)).items()))
        sizes = adapter.setting.sizes
        if pair and probe is SELF_ATTENTION and sizes.d_model * sizes.num_heads <= SMALL:
            # The probe hands over tokens alone: what else a module takes doesn't matter.
            return answer_of_pair(probe, adapter.setting, frozenset(), steps)
        return reference_answer(probe, adapter.setting, adapter.takes, steps)

    def with_note(self, words: str) -> "ModuleUnderTest":
        """Add to what the candidate is taken for."""
        return replace(self, taken=(*self.taken, words))

    def changed(self, **changes: Any) -> "ModuleUnderTest":
        """Return the same modules, called in another way."""
        setting = {k: v for k, v in changes.items() if k in ("always_causal", "mask_replaces")}
        rest = {k: v for k, v in changes.items() if k not in setting}
        adapters = {}
        for size, one in self.adapters.items():
            one = replace(one, setting=replace(one.setting, **setting), **rest)
            takes = one.signature.takes
            if one.setting.always_causal:
                takes -= {"two sequences", "causal"}
            adapters[size] = replace(one, takes=takes)
        return replace(self, adapters=adapters)

    def called(self, **changes: Any) -> "ModuleUnderTest":
        """Return the same modules, with some of their signature changed."""
        return self.changed(signature=replace(self.first.signature, **changes))

    def varies(self, mode: CallMode) -> bool:
        """Return whether two equal calls give two outputs."""
        x = RandomInputs(self.first).tokens(2, 7)
        with suppress(Exception), self.first.on(mode) as adapter:
            (one, _), (other, _) = adapter(x.clone()), adapter(x.clone())
            return not torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
        return False

    def counts_calls(self, mode: CallMode) -> bool:
        """Return whether fresh copies agree, and two calls of one with the same seed don't."""
        x = RandomInputs(self.first).tokens(2, 7)

        def answers(adapter: Adapter, calls: int) -> list[Tensor]:
            found = []
            with adapter.on(mode) as in_mode:
                for _ in range(calls):
                    torch.default_generator.manual_seed(1)
                    found.append(in_mode(x.clone())[0].detach())
            return found

        with suppress(Exception):
            (one,), (other,) = (answers(self.first.fresh_copy(), 1) for _ in range(2))
            first, second = answers(self.first.fresh_copy(), 2)
            return torch.equal(one, other) and not torch.equal(first, second)
        return False

    @property
    def low_precisions(self) -> tuple[str, ...]:
        """Names of the dtypes with fewer digits than float32 in which it computes."""
        with suppress(Exception), self.first.on() as adapter, _Precisions() as seen:
            adapter(RandomInputs(adapter).tokens(2, 7))
            return tuple(sorted(str(dtype).removeprefix("torch.") for dtype in seen.low))
        return ()

    @property
    def extra_parameters(self) -> tuple[str, ...]:
        """Names of parameters that move its output, and hold none of attention's weights."""
        parameters = dict(self.first.module.named_parameters())
        names = [name for name in self.first.untouched if parameters[name].requires_grad]
        with suppress(Exception), self.first.on() as adapter:
            output, _ = adapter(RandomInputs(adapter).tokens(2, 7))
            numbers = [parameters[name] for name in names]
            slopes = torch.autograd.grad(output.square().sum(), numbers, allow_unused=True)
            return tuple(n for n, slope in zip(names, slopes, strict=True) if slope is not None)
        return ()

    def idle_arguments(self, probe: Probe) -> tuple[str, ...]:
        """Return the roles of the arguments that a probe is about, and that change nothing."""
        about = {"causal"}
        if "two sequences" in probe.needs:
            about = {"key", "value", "key_value"}
        elif probe.needs:
            about |= {"mask", "key_mask"}
        inputs = RandomInputs(self.first)
        x, one, other = inputs.tokens(2, 7), inputs.tokens(2, 5), inputs.tokens(2, 5)
        real = torch.arange(7) < torch.tensor([[5], [6]])
        limits = {"mask": inputs.mask(7, 7), "key_mask": real, "causal": True}
        tokens = {"key": (x, other, one), "value": (x, one, other), "key_value": (x, other)}
        idle = []
        for role in self.first.signature.roles:
            if role not in about & self.first.takes:
                continue
            limit: dict[str, Any] = {role: limits[role]} if role in limits else {}
            with suppress(Exception), self.first.on() as adapter:
                before, _ = adapter(*((x,) if limit else (x, one, one)))
                after, _ = adapter(*tokens.get(role, (x,)), **limit)
                if torch.equal(before, after):
                    idle.append(role)
        return tuple(idle)


def _joined(answers: Iterable[Answer]) -> Answer:
    """Return the answers of several sizes in one, or the first error."""
    results: list[Pair] = []
    for answer in answers:
        if isinstance(answer, Exception):
            return answer
        results += answer
    return results


class _Precisions(TorchFunctionMode):
    """Records in which dtypes with fewer digits than float32 anything inside is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.low: set[torch.dtype] = set()

    def __torch_function__(
        self, function: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.dtype in (torch.float16, torch.bfloat16):
            self.low.add(result.dtype)
        return result


# --- loading the reference's weights -------------------------------------------------------------


def in_each_layout(candidate: Candidate, options: DiagnoseOptions) -> Iterator[ModuleUnderTest]:
    """Yield the candidate's modules, loaded in each layout that its weights may have."""
    modules, sizes = _modules(candidate, options)
    taken = _taken_as_built(candidate, modules)
    own_numbers = modules["first"].named_parameters() if isinstance(candidate, nn.Module) else ()
    unwell = {name for name, numbers in own_numbers if not numbers.isfinite().all()}
    frozen = {name for name, p in modules["first"].named_parameters() if not p.requires_grad}
    tried = [Layout(options.qkv or "blocks", transposed=options.transposed is not False)]
    for i, layout in enumerate(tried, 1):  # the first one's weight map gives the others
        options.clock.doing = f"looking for the layout of its weights ({i} of {len(tried)})"
        adapters = {}
        for name, module in modules.items():
            one = _loaded(copy_of(module), sizes[name], options, layout)
            if one is not None:
                adapters[name] = one
            elif name == "first":
                raise CallError(build.unloadable(module, sizes[name]))
        first = adapters["first"]
        weight_map = first.weight_map or []
        if options.qkv and not weights.packed(weight_map):
            kind = type(first.module).__name__
            raise CallError(TEXT("qkv apart", qkv=options.qkv, kind=kind))
        if len(tried) == 1:
            tried += weights.layouts(weight_map, options.qkv, options.transposed)[1:]
        words = (*taken, *_taken_as_loaded(first, options, unwell, frozen))
        words = (*words, *_stored(weight_map, layout))
        rare = bool(layout.spread) or layout.packing == weights.NUMBERS
        yield ModuleUnderTest(candidate, options, adapters, words, rare=rare)


def _modules(
    candidate: Candidate, options: DiagnoseOptions
) -> tuple[dict[str, nn.Module], dict[str, Sizes]]:
    """Build modules of all sizes that the candidate offers."""
    if isinstance(candidate, nn.Module):
        sizes = {"first": build.own_sizes(candidate, options)}
    else:
        sizes = {"first": build.FIRST, "second": build.SECOND, "grouped": build.GROUPED}
        sizes |= {"one head": build.ONE_HEAD, "odd": build.ODD}
    sizes["dropout"] = replace(sizes["first"], dropout=build.DROPPED)
    modules: dict[str, nn.Module] = {}
    for name, size in tuple(sizes.items()):
        try:
            module = build.module_of(candidate, size)
        except CallError:
            if name == "first":
                raise
            continue
        if module is not None:
            modules[name] = module
            if options.load is None:  # a class may have one key head, or wider heads, by itself
                sizes[name] = build.as_built(module, size) or size
    return modules, sizes


def _taken_as_built(candidate: Candidate, modules: dict[str, nn.Module]) -> list[str]:
    """Set norms aside; say that, and what was unwrapped."""
    wrapped = isinstance(candidate, nn.Module) and build.unwrapped(candidate) is not candidate
    taken = [TEXT("unwrapped", kind=type(candidate).__name__)] if wrapped else []
    norms, *_ = [build.set_norms_aside(module) for module in modules.values()]
    return [*taken, TEXT("norms", norms=", ".join(norms))] if norms else taken


def _taken_as_loaded(
    first: Adapter, options: DiagnoseOptions, unwell: set[str], frozen: set[str]
) -> Iterator[str]:
    """Yield which sizes, biases and weights a module was taken to have."""
    sizes, weight_map = first.setting.sizes, first.weight_map or ()
    theirs = {entry.ours: entry.theirs for entry in weight_map}
    if sizes.head_dim:
        yield TEXT("wide heads", num_heads=sizes.num_heads, d_k=sizes.d_k, d_model=sizes.d_model)
    missing = [W for W in PROJECTIONS if W not in first.setting.biases]
    if missing:
        one = f"a bias in {', '.join(missing)}"
        yield TEXT("biases", without="biases" if len(missing) == 4 else one)
    filled = dict.fromkeys(entry.theirs for entry in weight_map)
    biases = [entry.theirs for entry in weight_map if entry.ours.endswith("bias")]
    without = [] if options.out_projection else [theirs.get("W_o.weight", "")]
    told = {
        "filled anew": [name for name in filled if name in unwell],
        "frozen": [name for name in filled if name in frozen],
        "biases told": biases if options.bias is False else [],
    }
    yield from (TEXT(text, names=name_list(names)) for text, names in told.items() if names)
    if options.scale is not None:
        yield TEXT("scale told")
    if not options.out_projection:
        yield TEXT("no projection")
    if any(without):
        yield TEXT("projection told", names=without[0])


def _stored(weight_map: WeightMap, layout: Layout) -> Iterator[str]:
    """Yield how weights are stored, where that was found by trying."""
    order = weights.packed(weight_map)
    if layout.spread:
        yield TEXT("spread", projections=" and ".join(layout.spread))
    if order:
        made = [word for word in ("queries", "keys", "values") if word[0] in order]
        which = " and ".join((", ".join(made[:-1]), made[-1]))
        usual = order in ("qkv", "kv", "qk")
        in_order = "" if usual else f", in the order {', '.join(order)}"
        yield TEXT("packed", which=which, packing=layout.packing, order=in_order)
    if weights.guessed(weight_map):
        yield TEXT("raw", use="x @ W" if layout.transposed else "x @ W.T")


def _loaded(
    module: nn.Module, sizes: Sizes, options: DiagnoseOptions, layout: Layout
) -> Adapter | None:
    """Copy the reference's weights into a module; None if that fails at these sizes."""
    signature = read_signature(module, options)
    if options.batch_first is not None:
        signature = replace(signature, batch_first=options.batch_first)
    weight_map = None
    if options.load is None:
        weight_map = weights.find_weights(module, sizes, layout)
        if weight_map is None:
            return None
    setting = Setting(
        sizes, _biases(module, sizes, options, weight_map), options.causal == "always", False,
        options.out_projection,
    )  # fmt: skip
    right = copy.deepcopy(reference(setting))  # `load` may change it
    scale_ratio = options.scale_ratio(sizes.d_k)
    with torch.no_grad():
        for numbers in right.W_q.parameters():
            numbers.div_(scale_ratio)
    try:
        untouched = _copied(module, right, options.load, weight_map)
    except CallError:
        raise
    except Exception as error:
        if options.load is None or sizes.num_kv_heads != sizes.num_heads:
            return None
        kind = type(module).__name__
        raise CallError(TEXT("load raised", kind=kind, error=error_text(error))) from error
    module.eval()
    return Adapter(
        module, setting, signature, signature.takes, weight_map, tuple(untouched),
        scale_ratio=scale_ratio, fresh=copy_of(module), clock=options.clock,
    )  # fmt: skip


def _biases(
    module: nn.Module, sizes: Sizes, options: DiagnoseOptions, weight_map: WeightMap | None
) -> frozenset[str]:
    """Return the projections that add a bias."""
    if options.bias is not None:
        return frozenset(PROJECTIONS if options.bias else ())
    if options.load is not None:
        return _biases_copied(module, reference(Setting(sizes)), options.load)
    there = {entry.ours for entry in weight_map or ()}
    return frozenset(W for W in PROJECTIONS if f"{W}.bias" in there or f"{W}.weight" not in there)


def _biases_copied(module: nn.Module, right: MultiHeadAttention, load: Load) -> frozenset[str]:
    """Return the projections whose bias `load` copies: those that change something."""

    def loaded(changed: str = "") -> dict[str, Tensor]:
        one, other = copy_of(module), copy.deepcopy(right)
        if changed:
            with torch.no_grad():
                other.get_parameter(f"{changed}.bias").add_(1)
        load(one, other)
        return {name: x.detach().clone() for name, x in one.state_dict().items()}

    if all(p.dim() != 1 for p in module.parameters()):
        return frozenset()
    try:
        usual = loaded()
        return frozenset(
            W for W in PROJECTIONS
            if any(not torch.equal(x, usual[name]) for name, x in loaded(W).items())
        )  # fmt: skip
    except Exception:  # reported where `load` is called in earnest
        return frozenset(PROJECTIONS)


def _copied(
    module: nn.Module, right: MultiHeadAttention, load: Load | None, weight_map: WeightMap | None
) -> list[str]:
    """Copy the reference's weights; return the names of the parameters that stay as they were."""
    if load is not None:
        return _copied_by(load, module, right)
    weights.fill(module, weight_map or [], right)
    theirs = {entry.theirs for entry in weight_map or ()}
    for name in theirs:
        module.get_parameter(name).requires_grad_()
    return [name for name, _ in module.named_parameters() if name not in theirs]


def _copied_by(load: Load, module: nn.Module, right: MultiHeadAttention) -> list[str]:
    """Let `load` copy weights; return the names of the parameters that stay as they were."""
    there = module.state_dict(keep_vars=True)
    before = {name: (x, x._version, x.clone()) for name, x in there.items()}
    load(module, right)
    untouched = [
        name for name, x in module.state_dict(keep_vars=True).items()
        if name in before and x is before[name][0] and x._version == before[name][1]
        and torch.equal(x, before[name][2])
    ]  # fmt: skip
    if before and len(untouched) == len(before):
        raise CallError(TEXT("load changed nothing", names=name_list(untouched)))
    parameters = dict(module.named_parameters())
    return [name for name in untouched if name in parameters]
