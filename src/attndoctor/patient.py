"""A candidate that is ready to be asked, beside the modules of attnlib that are asked the same."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from attndoctor.asking import PATHS, Asked, Pair, Path, ask_of_attnlib
from attndoctor.comparing import agree
from attndoctor.draw import Draw
from attndoctor.machine import Precisions
from attndoctor.probes import Answer, Probe, put
from attndoctor.reference import Setting, reference, stepped
from attndoctor.told import Steps


@lru_cache(maxsize=1024)  # a diagnosis asks for some hundreds, of wide modules a megabyte each
def answer_of_attnlib(
    probe: Probe, setting: Setting, takes: frozenset[str], steps: Steps = ()
) -> Answer:
    """Return what the right module, or one with these steps, answers."""
    module = stepped(setting, dict(steps)) if steps else reference(setting)
    with ask_of_attnlib(module, setting, takes).on(PATHS[0]) as asked:
        return put(probe, asked)


@dataclass(frozen=True)
class Patient:
    """A candidate that can be asked: its modules by the names of their sizes.

    taken: what it was taken for, in a few words each. random_in_training: whether it gives two
    answers there though its dropout is 0. rare: whether its weights are laid out as few have them.
    formula: the steps of attention that it is held against in place of the paper's.
    """

    asked: dict[str, Asked]
    taken: tuple[str, ...] = ()
    random_in_training: bool = False
    rare: bool = False
    formula: Steps = ()

    def answer(self, probe: Probe, path: Path = PATHS[0]) -> Answer:
        """Put a probe to all modules that it is for."""
        results: list[Pair] = []
        for asked in self._for(probe):
            with asked.on(path) as on_path:
                answer = put(probe, on_path)
            if isinstance(answer, Exception):
                return answer
            results += answer
        return results

    def compared(self, probe: Probe, steps: Steps = ()) -> Answer:
        """Return what attnlib's modules answer, or those with these steps."""
        results: list[Pair] = []
        for asked in self._for(probe):
            answer = answer_of_attnlib(probe, asked.setting, asked.takes, self._by_formula(steps))
            if isinstance(answer, Exception):
                return answer
            results += answer
        return results

    def behaves_like(self, steps: Steps, probe: Probe, given: Answer) -> bool:
        """Tell whether an answer is what these steps give, error messages included."""
        start = 0
        for asked in self._for(probe):  # one size after the other: most guesses fail on the first
            answer = answer_of_attnlib(probe, asked.setting, asked.takes, self._by_formula(steps))
            if isinstance(answer, Exception):
                return type(given) is type(answer) and str(given) == str(answer)
            if isinstance(given, Exception):
                continue
            part = given[start : start + len(answer)]
            if not agree(part, answer, probe.tolerance):
                return False
            start += len(answer)
        return not isinstance(given, Exception)

    def right(self, probe: Probe, path: Path = PATHS[0]) -> bool:
        """Tell whether it answers a probe as it should, one size after the other."""
        for asked in self._for(probe):
            with asked.on(path) as on_path:
                given = put(probe, on_path)
            right = answer_of_attnlib(probe, asked.setting, asked.takes, self.formula)
            if not agree(given, right, probe.tolerance):
                return False
        return True

    def right_anew(self, probe: Probe, path: Path) -> bool:
        """Tell whether it answers a probe as it should if nothing was asked before."""
        asked = {size: one.anew() for size, one in self.asked.items()}
        return replace(self, asked=asked).right(probe, path)

    def right_weights(self, probe: Probe) -> bool:
        """Tell whether the weights that it shows are right, whatever its outputs are."""
        given, right = self.answer(probe), self.compared(probe)
        if isinstance(given, Exception) or isinstance(right, Exception):
            return False
        shown, weights = ([(None, weights) for _, weights in answer] for answer in (given, right))
        return agree(shown, weights, probe.tolerance)

    def gives_outputs(self, probe: Probe) -> bool:
        """Tell whether it answers with outputs of the right shapes, whatever is in them."""
        given, right = self.answer(probe), self.compared(probe)
        if isinstance(given, Exception) or isinstance(right, Exception):
            return False
        pairs = zip(given, right, strict=True)
        return all(a is None or b is None or a.shape == b.shape for (a, _), (b, _) in pairs)

    def raises(self, probe: Probe) -> bool:
        """Tell whether a probe makes it raise an error."""
        return isinstance(self.answer(probe), Exception)

    def varies(self, path: Path) -> bool:
        """Tell whether it gives two answers to one question."""
        x = Draw(self.first).tokens(2, 7)
        with suppress(Exception), self.first.on(path) as asked:
            (one, _), (other, _) = asked(x.clone()), asked(x.clone())
            return not torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
        return False

    @property
    def low_precisions(self) -> tuple[str, ...]:
        """Names of the dtypes with fewer digits than float32 in which it computes."""
        with suppress(Exception), self.first.on(PATHS[0]) as asked, Precisions() as seen:
            asked(Draw(asked).tokens(2, 7))
            return tuple(sorted(str(dtype).removeprefix("torch.") for dtype in seen.low))
        return ()

    def counts_calls(self, path: Path) -> bool:
        """Tell whether its answers vary with earlier calls alone, and not by chance.

        Copies that were asked nothing agree, and with one seed one copy doesn't agree with itself.
        """
        x = Draw(self.first).tokens(2, 7)

        def answers(asked: Asked, calls: int) -> list[Tensor]:
            found = []
            with asked.on(path) as on_path:
                for _ in range(calls):
                    torch.default_generator.manual_seed(1)
                    found.append(on_path(x.clone())[0].detach())
            return found

        with suppress(Exception):
            (one,), (other,) = (answers(self.first.anew(), 1) for _ in range(2))
            first, second = answers(self.first.anew(), 2)
            return torch.equal(one, other) and not torch.equal(first, second)
        return False

    @property
    def besides(self) -> tuple[str, ...]:
        """Names of parameters that move its output, but hold none of attention's weights."""
        parameters = dict(self.first.module.named_parameters())
        names = [name for name in self.first.untouched if parameters[name].requires_grad]
        with suppress(Exception), self.first.on(PATHS[0]) as asked:
            output, _ = asked(Draw(asked).tokens(2, 7))
            numbers = [parameters[name] for name in names]
            slopes = torch.autograd.grad(output.square().sum(), numbers, allow_unused=True)
            return tuple(n for n, slope in zip(names, slopes, strict=True) if slope is not None)
        return ()

    def has(self, probe: Probe) -> bool:
        """Tell whether there is a module for a probe."""
        return bool(self._for(probe))

    def _by_formula(self, steps: Steps) -> Steps:
        """Return what replaces steps of attention, if some of them are the formula's."""
        return tuple(sorted((dict(self.formula) | dict(steps)).items())) if self.formula else steps

    def _for(self, probe: Probe) -> list[Asked]:
        return [self.asked[size] for size in probe.sizes if size in self.asked]

    @property
    def first(self) -> Asked:
        """The module that stands for all."""
        return self.asked["first"]

    def noting(self, words: str) -> "Patient":
        """Return the same patient, with something more that it is taken for."""
        return replace(self, taken=(*self.taken, words))

    def changed(self, **changes: Any) -> "Patient":
        """Return the same patient, asked in another way."""
        setting = {k: v for k, v in changes.items() if k in ("always_causal", "mask_replaces")}
        rest = {k: v for k, v in changes.items() if k not in setting}
        asked = {}
        for size, one in self.asked.items():
            one = replace(one, setting=replace(one.setting, **setting), **rest)
            takes = one.forward.takes
            if one.setting.always_causal:
                takes -= {"two sequences", "causal"}
            asked[size] = replace(one, takes=takes)
        return replace(self, asked=asked)
