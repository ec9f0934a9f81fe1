"""Run all probes on a module, and find the exhibits that give the same answers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from attndoctor.call import ATTNLIB_STYLE, CALL_MODES, CallMode
from attndoctor.examine import EQUAL, examine
from attndoctor.module_under_test import ModuleUnderTest
from attndoctor.museum import EXHIBITS, Exhibit, scale
from attndoctor.museum.causal import NOT_CAUSAL
from attndoctor.options import Steps, is_about_environment, is_deliberate
from attndoctor.probes import ASKED_AGAIN, OF_PADDING, PROBES, SELF_ATTENTION, Probe, takes_all
from attndoctor.questions import SAYS, Group, MaskCombinations, Situation
from attndoctor.reference import (
    Answer,
    Results,
    Sizes,
    agree,
    differences,
    is_near,
    parts_agree,
    reference,
    side_by_side,
)
from attnlib.functional import split_heads

D_K = 10  # no formula of it meets its root
ROUNDED = 0.02  # of the largest number: a few roundings to bfloat16
CLEARLY = 0.01  # of the worst head's error: what W_o's inverse makes of rounding lies far below
NARROW = 256  # the largest d_model at which pairs of bugs are tried
ABOUT_SHAPES = (RuntimeError, IndexError, ValueError, AssertionError)
AMBIGUOUS = "Boolean value of Tensor"  # what torch says of `if mask`
Guess = tuple[Exhibit, ...]
Question = tuple[Probe, CallMode]
FIRST_QUESTION = (SELF_ATTENTION, CALL_MODES[0])


@dataclass
class Answers:
    """A module's answers to all probes that it can run, in each mode."""

    tested: ModuleUnderTest
    given: dict[Question, Answer]
    finished: bool = False

    @classmethod
    def of(cls, tested: ModuleUnderTest) -> "Answers":
        """Run all probes that a module can run."""
        answers = cls(tested, {})
        answers.run()
        return answers

    def run(self) -> None:
        """Run all probes that the module can run, and keep each answer as it comes."""
        questions = list(_questions(self.tested))
        for i, (probe, mode) in enumerate(questions, 1):
            self.tested.options.clock.doing = f"asking {probe.name!r} ({i} of {len(questions)})"
            answer = self.tested.answer(probe, mode)
            self.given[probe, mode] = answer
            if i == 1 and is_about_environment(answer):  # and so is every other
                self.given |= dict.fromkeys(questions, answer)
                break
        self.finished = True
        self.tested.options.clock.doing = "looking for what explains its answers"

    @classmethod
    def to_self_attention(cls, tested: ModuleUnderTest) -> "Answers":
        """Run the first probe alone, in the first mode."""
        return cls(tested, {FIRST_QUESTION: tested.answer(SELF_ATTENTION)})

    def under(self, **options: Any) -> "Answers":
        """Examine the candidate under other options, and run all probes again."""
        changed = replace(self.tested.options, **options)
        return Answers.of(examine(self.tested.candidate, changed))

    # --- what is wrong

    def right(self, question: Question) -> bool:
        """Return whether an answer is attention's."""
        return self.agrees(question, ())

    def agrees(self, question: Question, guess: Guess) -> bool:
        """Return whether an answer is what these exhibits give."""
        probe, _ = question
        return agree(self.given[question], self.behavior(guess, probe), probe.tolerance)

    def behavior(self, guess: Guess, probe: Probe) -> Answer:
        """Return what a module with these bugs answers."""
        return self.tested.compared(probe, _steps(guess))

    @cached_property
    def failed(self) -> list[Question]:
        """The questions with wrong answers, mode by mode; those of dropout last."""
        failed = [question for question in self.given if not self.right(question)]
        return sorted(failed, key=lambda question: question[0].sizes == ("dropout",))

    @property
    def wrong(self) -> list[Question]:
        """The failed questions that aren't about an edge."""
        return [question for question in self.failed if not self.edge(question)]

    @property
    def fails_self_attention(self) -> bool:
        """Whether plain self-attention is wrong already."""
        return FIRST_QUESTION in self.failed

    def edge(self, question: Question) -> str:
        """Return what a wrong answer means, if it is at an edge only."""
        probe, _ = question
        is_error = isinstance(self.given[question], Exception)
        return probe.edge or (probe.error if is_error else "")

    @property
    def not_run(self) -> list[Probe]:
        """The probes that a module can't run, but for those of a rare convention."""
        run = {probe for probe, _ in self.given}
        if not self.finished:
            return []
        return [probe for probe in PROBES if probe not in run and not probe.optional]

    def names(self, questions: list[Question]) -> tuple[str, ...]:
        """Return the names of the probes, each once."""
        return tuple(dict.fromkeys(probe.name for probe, _ in questions))

    def right_in(self, probe: Probe, mode: CallMode) -> bool:
        """Return whether a probe ran in a mode, and its answer is right."""
        return (probe, mode) in self.given and (probe, mode) not in self.failed

    # --- what kind of wrong it is

    @property
    def only_refused(self) -> bool:
        """Whether all that is wrong are errors raised on purpose, on some questions of many."""
        if self.fails_self_attention or self.takes_no_mask:
            return False
        return all(is_deliberate(self.given[question]) for question in self.wrong)

    @property
    def takes_no_mask(self) -> bool:
        """Whether it is right without masks, and any mask raises an error."""
        of_masks = {"mask", "masks", "a limit", "two limits"}
        masked = [question for question in self.given if of_masks & set(question[0].needs)]
        unknown = bool(masked) and self.tested.first.signature.mask == ATTNLIB_STYLE
        raised = all(
            isinstance(self.given[question], ABOUT_SHAPES)
            and AMBIGUOUS not in str(self.given[question])
            for question in masked
        )
        return unknown and raised and set(self.wrong) <= set(masked)

    def mostly_right(self, question: Question) -> bool:
        """Return whether an answer is wrong by little, or in few numbers."""
        return is_near(self.given[question], self.behavior((), question[0]))

    @cached_property
    def keeps_something(self) -> bool:
        """Whether the first wrong answer depends on earlier calls."""
        again = (ASKED_AGAIN, CALL_MODES[0])
        if again in self.failed and not self.fails_self_attention:
            return not isinstance(self.given[again], Exception)
        return self.tested.right_when_fresh(*self.wrong[0])

    @cached_property
    def varies(self) -> bool:
        """Whether two equal calls give two outputs."""
        return self.tested.varies(CALL_MODES[0])

    @cached_property
    def right_on_equal_tokens(self) -> bool:
        """Whether equal tokens come out right: projections are, and rows of weights sum to 1."""
        return self.tested.right(EQUAL)

    @property
    def off_by_rounding(self) -> bool:
        """Whether the first answer is as far off as numbers of 8 bits are."""
        right = self.behavior((), SELF_ATTENTION)
        assert not isinstance(right, Exception)
        largest = max(output.abs().max().item() for output, _ in right if output is not None)
        return differences(self.given[FIRST_QUESTION], right).max().item() < ROUNDED * largest

    @property
    def _first_outputs(self) -> tuple[Tensor, Tensor] | None:
        """The first output and the right one, if there are both."""
        pairs = side_by_side(self.given[FIRST_QUESTION], self.behavior((), SELF_ATTENTION))
        ((output, _), (expected, _)) = pairs[0] if pairs else ((None, None), (None, None))
        return None if output is None or expected is None else (output, expected)

    @property
    def heads_off(self) -> list[int]:
        """The heads whose part in the first output is wrong, if others are right."""
        setting, outputs = self.tested.first.setting, self._first_outputs
        W_o = reference(setting).W_o.weight.detach().double()
        if outputs is None or outputs[0].shape != outputs[1].shape:
            return []
        if W_o.shape[0] != W_o.shape[1]:  # no inverse
            return []
        gap = (outputs[0] - outputs[1]).double()
        joined = torch.linalg.solve(W_o, gap.mT).mT
        errors = split_heads(joined, setting.sizes.num_heads).abs().amax((0, 2, 3))
        off = (errors > CLEARLY * errors.amax()).nonzero().flatten().tolist()
        return off if len(off) < len(errors) else []

    @property
    def other_length(self) -> tuple[list[int], list[int]] | None:
        """The shapes of an output and of its queries, if it has another number of tokens."""
        outputs = self._first_outputs
        if outputs is None or outputs[0].dim() != 3:
            return None
        (B, T, d), wanted = outputs[0].shape, list(outputs[1].shape)
        return ([B, T, d], wanted) if wanted == [B, wanted[1], d] and T != wanted[1] else None

    @property
    def shows_weights(self) -> bool:
        """Whether weights came beside the first output."""
        given = self.given[FIRST_QUESTION]
        return not isinstance(given, Exception) and given[0][1] is not None

    @property
    def shows_something_else(self) -> bool:
        """Whether all outputs are right, and what came beside one of them can't be weights."""
        answers = [(self.given[q], self.behavior((), q[0]), q[0].tolerance) for q in self.wrong]
        return all(parts_agree(*each) for each in answers) and any(
            ours is not None and theirs is not None and not _may_be(ours, theirs)
            for given, right, _ in answers
            for (_, ours), (_, theirs) in side_by_side(given, right)
        )

    # --- which exhibits it behaves like

    def explain(self, first: Question, limit: int = 2) -> Guess:
        """Return the exhibits that give this answer, and are right wherever the module is.

        Two are tried together where one doesn't explain it, up to `limit`.
        """
        same_path = [question for question in self.given if question[1] is first[1]]
        possible = self._possible(first[1])
        singles = ((exhibit,) for exhibit in possible if self._may_show((exhibit,), first[0]))
        for guesses in (singles, self._pairs(possible, first))[: limit if self.narrow else 1]:
            explaining = [
                guess
                for guess in guesses
                if self.tested.behaves_like(
                    _steps(guess), first[0], self.given[first], pair=len(guess) > 1
                )
                and not any(self._contradicts(question, guess) for question in same_path)
                and all(self.agrees(question, guess) for question in self._beside(first))
            ]
            if len(explaining) == 1:
                return explaining[0]
            if explaining:
                return self._fittest(explaining, same_path)
        return ()

    def shows(self, guess: Guess, question: Question) -> bool:
        """Return whether exhibits are wrong on a question too."""
        probe, _ = question
        return bool(guess) and not agree(
            self.behavior(guess, probe), self.behavior((), probe), probe.tolerance
        )

    def _may_show(self, guess: Guess, probe: Probe) -> bool:
        """Return whether exhibits are wrong on a probe, at a width at which that is quick."""
        sketch = self._sketch
        return not agree(
            sketch.compared(probe, _steps(guess)), sketch.compared(probe), probe.tolerance
        )

    @cached_property
    def _sketch(self) -> ModuleUnderTest:
        """The module with narrower heads if it is wide: exhibits do the same at any width."""
        if self.narrow:
            return self.tested
        adapters = {}
        for size, one in self.tested.adapters.items():
            sizes = one.setting.sizes
            kv_heads = min(sizes.num_kv_heads, 3)
            heads = kv_heads * min(sizes.num_heads // sizes.num_kv_heads, 2)
            sizes = Sizes(D_K * heads, heads, kv_heads, sizes.dropout)
            adapters[size] = replace(one, setting=replace(one.setting, sizes=sizes))
        return replace(self.tested, adapters=adapters)

    @property
    def narrow(self) -> bool:
        """Whether the module is small enough to try every pair of exhibits."""
        return self.tested.first.setting.sizes.d_model <= NARROW

    def _fittest(self, guesses: list[Guess], questions: list[Question]) -> Guess:
        """Return the guess that explains most answers; of two bugs, those that do little else."""
        explained = [sum(self.agrees(q, guess) for q in questions) for guess in guesses]
        best = [g for g, n in zip(guesses, explained, strict=True) if n == max(explained)]
        if len(best[0]) == 1:
            return best[0]

        def shown(guess: Guess) -> int:
            return sum(self._may_show((e,), probe) for e in guess for probe, _ in questions)

        return min(best, key=shown)

    def _contradicts(self, question: Question, guess: Guess) -> bool:
        """Return whether exhibits get a question wrong that was answered rightly."""
        if question in self.failed or not self._may_show(guess, question[0]):
            return False
        return not self.agrees(question, guess)

    def _beside(self, first: Question) -> list[Question]:
        """Return outputs of padding: they part padding dropped from padding on the wrong axis."""
        probe, mode = first
        if "key_mask" not in probe.needs:
            return []
        return [question for question in self.failed if question == (OF_PADDING, mode)]

    def _possible(self, mode: CallMode) -> list[Exhibit]:
        """Return the exhibits that are right on one sequence, if the module is right there."""
        wrong_there = (SELF_ATTENTION, mode) in self.failed
        adapter = self.tested.first
        about_scale = adapter.scale_ratio != 1
        excluded = [x for x in vars(scale).values() if about_scale and isinstance(x, Exhibit)]
        if not adapter.setting.always_causal and "causal" not in adapter.takes:
            excluded.append(NOT_CAUSAL)  # about the triangle
        return [
            e
            for e in EXHIBITS
            if (wrong_there or not self._may_show((e,), SELF_ATTENTION)) and e not in excluded
        ]

    def _pairs(self, possible: list[Exhibit], first: Question) -> Iterator[Guess]:
        """Yield any two bugs that can be in one module, if one of them shows in a question."""
        shown = {exhibit for exhibit in possible if self._may_show((exhibit,), first[0])}
        if (SELF_ATTENTION, first[1]) not in self.failed:  # little can cancel what shows so late
            same_path = [question for question in self.given if question[1] is first[1]]
            shown = {e for e in shown if not any(self._contradicts(q, (e,)) for q in same_path)}
        if isinstance(self.given[first], Exception):  # one of them raises it by itself
            shown = {e for e in shown if isinstance(self.behavior((e,), first[0]), Exception)}
        for pair in combinations(possible, 2):
            if not set(pair[0].steps) & set(pair[1].steps) and shown & set(pair):
                yield pair


def _questions(tested: ModuleUnderTest) -> Iterator[Question]:
    """Yield the probes that a module can run, in each mode that it has."""
    takes = tested.first.takes
    for mode in CALL_MODES:
        if not mode.weights and "need_weights" not in takes:
            continue
        if mode.training and tested.random_in_training:
            continue
        for probe in PROBES:
            fits = all(getattr(mode, what) for what in probe.mode_needs)
            if fits and takes_all(probe, takes) and tested.has(probe):
                yield probe, mode


def _may_be(shown: Tensor, weights: Tensor) -> bool:
    """Return whether it may be weights, right or wrong: not below 0, rows with the right sums."""
    if shown.shape != weights.shape or (shown < 0).any():
        return False
    return torch.allclose(shown.sum(-1), weights.sum(-1).to(shown), rtol=1e-3, atol=1e-3)


def _steps(guess: Guess) -> Steps:
    steps: dict[str, Any] = {}
    for exhibit in guess:
        steps |= exhibit.steps
    return tuple(sorted(steps.items()))


# --- the first wrong combination of limits -------------------------------------------------------


@dataclass(frozen=True)
class WrongCombination:
    """The first combination of limits with a wrong answer; `part` is its part of the answers."""

    question: Question
    answers: Answers
    situation: Situation
    group: Group
    part: slice

    @classmethod
    def first(cls, question: Question, answers: Answers) -> "WrongCombination | None":
        """Return it, if a question of combinations was answered with numbers."""
        probe, _ = question
        if not isinstance(probe.run, MaskCombinations):
            return None
        combined = probe.run.combinations(answers.tested.first.takes)
        right = answers.behavior((), probe)
        assert not isinstance(right, Exception)
        each = len(right) // len(combined)
        parts = (
            cls(question, answers, *combination, slice(i * each, (i + 1) * each))
            for i, combination in enumerate(combined)
        )
        return next((part for part in parts if not part._agrees(probe)), None)

    @property
    def says(self) -> str:
        """The combination in words."""
        limits = " and ".join(SAYS[limit] for limit in self.group)
        return ", ".join(words for words in (limits, self.situation.says) if words)

    @property
    def is_near(self) -> bool:
        """Whether most numbers are nearly right, as where a little leaks through a limit."""
        return is_near(*self._parts(self.question[0]))

    @property
    def spoils_whole_samples(self) -> bool:
        """Whether a sample that has no padding is wrong too, though padding is all that limits."""
        if self.group != ("key_mask",) or self.situation.says:  # elsewhere it may be another thing
            return False
        ((ours, _), *_), ((theirs, _), *_) = self._parts(self.question[0])
        if ours is None or theirs is None or ours.shape != theirs.shape:
            return False
        whole = self.situation.real.all(1)
        pairs = [(ours[whole], None)], [(theirs[whole], None)]
        return not agree(*pairs, self.question[0].tolerance)

    @property
    def dropped(self) -> str | None:
        """Return which limit has no effect, if without it the answer would be right."""
        for limit in self.group:
            if self._agrees(_without(self.question[0], limit)):
                others = [SAYS[other] for other in self.group if other != limit]
                beside = f" beside {' and '.join(others)}" if others else ""
                return (
                    f"It answers as it should without {SAYS[limit]}: that is dropped{beside}. "
                    "A look must be allowed by all that is handed over, at all sizes."
                )
        return None

    def _parts(self, probe: Probe) -> tuple[Results, Results]:
        """Return this combination's part of the answers, and of the right ones to a probe."""
        given, right = self.answers.given[self.question], self.answers.behavior((), probe)
        assert not isinstance(given, Exception) and not isinstance(right, Exception)
        return given[self.part], right[self.part]

    def _agrees(self, probe: Probe) -> bool:
        return agree(*self._parts(probe), probe.tolerance)


@cache  # so that answers are remembered
def _without(probe: Probe, limit: str) -> Probe:
    """Return a probe of combinations that leaves a limit out."""
    assert isinstance(probe.run, MaskCombinations)
    return replace(probe, run=replace(probe.run, forgets=frozenset({limit})))
