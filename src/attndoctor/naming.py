"""Finding the exhibits that a candidate behaves like."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from attndoctor.asking import PATHS, Pair, Path
from attndoctor.comparing import NEAR, agree, farthest, mostly
from attndoctor.examine import EQUAL
from attndoctor.machine import is_missing
from attndoctor.mask_style import OWN
from attndoctor.museum._catalog import EXHIBITS
from attndoctor.museum._exhibit import Exhibit
from attndoctor.museum.causal import NOT_CAUSAL
from attndoctor.museum.scale import EXHIBITS as OF_SCALE
from attndoctor.patient import Patient
from attndoctor.probes import ASKED_AGAIN, OF_PADDING, PROBES, Answer, Probe, takes_all
from attndoctor.reference import Sizes, reference
from attndoctor.refusing import is_refusal
from attndoctor.told import Steps
from attnlib.functional import split_heads

D_K = 10  # no formula of it meets its root
ROUNDED = 0.02  # of the largest number: a few roundings to bfloat16
CLEARLY = 0.01  # of the worst head's error: what W_o's inverse makes of rounding lies far below
NARROW = 256  # d_model up to which two bugs at once are looked for
ABOUT_SHAPES = (RuntimeError, IndexError, ValueError, AssertionError)
# What Python and convolutions say where tokens are taken for a tuple or for images.
ABOUT_OTHER_FORMS = ("values to unpack", "expected input[", "Expected 4D", "or 4D (batched)")
AMBIGUOUS = "Boolean value of Tensor"  # what torch says of `if mask`
ABOUT_NORMS = "'Identity' object has no attribute"  # where a normalization was set aside
ABOUT_DTYPES = re.compile("same dtype|dtype.*did not match|expected scalar type")
Guess = tuple[Exhibit, ...]
Question = tuple[Probe, Path]


@dataclass
class Answers:
    """All that a patient was asked, and what it answered."""

    patient: Patient
    given: dict[Question, Answer]

    @classmethod
    def of(cls, patient: Patient) -> "Answers":
        """Ask whatever can be asked, on each path."""
        takes = patient.first.takes
        given: dict[Question, Answer] = {}
        lacking: Answer = []  # on this machine, and so for every question
        for path in PATHS:
            if not path.weights and "need_weights" not in takes:
                continue
            if path.training and patient.random_in_training:
                continue
            for probe in PROBES:
                if not takes_all(probe, takes) or not patient.has(probe):
                    continue
                if path.training and probe.chooses_mode:
                    continue
                if not all(getattr(path, what) for what in probe.asks_for):
                    continue
                given[probe, path] = lacking or patient.answer(probe, path)
                if len(given) == 1 and is_missing(given[probe, path]):
                    lacking = given[probe, path]
        return cls(patient, given)

    @classmethod
    def at_once(cls, patient: Patient) -> "Answers":
        """Ask the first question alone, on the first path."""
        return cls(patient, {(PROBES[0], PATHS[0]): patient.answer(PROBES[0])})

    def right(self, question: Question) -> bool:
        """Tell whether a question was answered as attnlib's attention answers it."""
        return self.agrees(question, ())

    def agrees(self, question: Question, guess: Guess) -> bool:
        """Tell whether it was answered as these exhibits answer it."""
        probe, _ = question
        return agree(self.given[question], self.behavior(guess, probe), probe.tolerance)

    def shows(self, guess: Guess, question: Question) -> bool:
        """Tell whether exhibits are wrong on a question too."""
        probe, _ = question
        return bool(guess) and not agree(
            self.behavior(guess, probe), self.behavior((), probe), probe.tolerance
        )

    def may_show(self, guess: Guess, probe: Probe) -> bool:
        """Tell whether exhibits are wrong on a probe, at a width at which that is soon seen."""
        sketch = self._sketch
        return not agree(
            sketch.compared(probe, _steps(guess)), sketch.compared(probe), probe.tolerance
        )

    @cached_property
    def _sketch(self) -> Patient:
        """The patient with narrower heads if it is wide: what exhibits do doesn't hang on that."""
        if self.narrow:
            return self.patient
        asked = {}
        for size, one in self.patient.asked.items():
            sizes = one.setting.sizes
            kv_heads = min(sizes.num_kv_heads, 3)
            heads = kv_heads * min(sizes.num_heads // sizes.num_kv_heads, 2)
            sizes = Sizes(D_K * heads, heads, kv_heads, sizes.dropout)
            asked[size] = replace(one, setting=replace(one.setting, sizes=sizes))
        return replace(self.patient, asked=asked)

    def behavior(self, guess: Guess, probe: Probe) -> Answer:
        """Return what a module with these bugs answers."""
        return self.patient.compared(probe, _steps(guess))

    @cached_property
    def failed(self) -> list[Question]:
        """The questions that were answered wrongly, path by path; those of dropout at the end.

        What is wrong in training without dropout is the finding where it is wrong with it too.
        """
        failed = [question for question in self.given if not self.right(question)]
        return sorted(failed, key=lambda question: question[0].sizes == ("dropping",))

    @property
    def wrong(self) -> list[Question]:
        """Those of them that aren't about an edge."""
        return [question for question in self.failed if not self.edge(question)]

    @property
    def only_refused(self) -> bool:
        """Whether all that is wrong is that it raises errors on purpose, as for many samples.

        One that refuses every question, or every mask, is told otherwise.
        """
        if (PROBES[0], PATHS[0]) in self.failed or self.takes_no_mask:
            return False
        return all(is_refusal(self.given[question]) for question in self.wrong)

    @property
    def takes_no_mask(self) -> bool:
        """Whether it is right without masks, and can't go on with any."""
        of_masks = {"mask", "masks", "a limit", "two limits"}
        masked = [question for question in self.given if of_masks & set(question[0].needs)]
        unknown = bool(masked) and self.patient.first.forward.mask == OWN
        raised = all(
            isinstance(self.given[question], ABOUT_SHAPES)
            and AMBIGUOUS not in str(self.given[question])
            for question in masked
        )
        return unknown and raised and set(self.wrong) <= set(masked)

    def farthest(self, question: Question) -> float:
        """The largest difference between an answer's outputs and the right ones."""
        return farthest(self.given[question], self.behavior((), question[0]))

    def mostly_right(self, question: Question) -> bool:
        """Tell whether three outputs of four are near, as where a little leaks through a limit."""
        return mostly(self.given[question], self.behavior((), question[0])) < NEAR

    @cached_property
    def keeps_something(self) -> bool:
        """Whether what it answers first wrongly is right if nothing was asked before.

        Or whether it is right once, and not if it is asked again.
        """
        plain, again = (PROBES[0], PATHS[0]), (ASKED_AGAIN, PATHS[0])
        if again in self.failed and plain not in self.failed:
            return not isinstance(self.given[again], Exception)
        return self.patient.right_anew(*self.wrong[0])

    @cached_property
    def varies(self) -> bool:
        """Whether it gives two answers to one question."""
        return self.patient.varies(PATHS[0])

    @cached_property
    def right_on_equal_tokens(self) -> bool:
        """Whether equal tokens come out right: projections are, and rows of weights sum to 1."""
        return self.patient.right(EQUAL)

    @property
    def nearly_right(self) -> bool:
        """Whether the first answer is as far off as numbers of 8 bits are."""
        plain = (PROBES[0], PATHS[0])
        right = self.behavior((), PROBES[0])
        assert not isinstance(right, Exception)
        outputs = [output for output, _ in right if output is not None]
        largest = max(output.abs().max().item() for output in outputs)
        return self.farthest(plain) < ROUNDED * largest

    def right_on(self, probe: Probe, path: Path) -> bool:
        """Tell whether a probe was put on a path, and answered rightly."""
        return (probe, path) in self.given and (probe, path) not in self.failed

    @property
    def heads_off(self) -> list[int]:
        """The heads whose part in the first output is wrong, if others are right."""
        asked, plain = self.patient.first, (PROBES[0], PATHS[0])
        given, right = self.given[plain], self.behavior((), PROBES[0])
        if isinstance(given, Exception) or isinstance(right, Exception):
            return []
        (output, _), (expected, _) = given[0], right[0]
        if output is None or expected is None or output.shape != expected.shape:
            return []
        W_o = reference(asked.setting).W_o.weight.detach().double()
        if W_o.shape[0] != W_o.shape[1]:  # heads as wide as they like have no inverse
            return []
        joined = torch.linalg.solve(W_o, (output - expected).double().mT).mT
        errors = split_heads(joined, asked.setting.sizes.num_heads).abs().amax((0, 2, 3))
        off = (errors > CLEARLY * errors.amax()).nonzero().flatten().tolist()
        return off if len(off) < len(errors) else []

    @property
    def shows_weights(self) -> bool:
        """Whether weights came beside the first answer."""
        given = self.given[PROBES[0], PATHS[0]]
        return not isinstance(given, Exception) and given[0][1] is not None

    @property
    def shows_something_else(self) -> bool:
        """Whether all outputs are right, and what stands beside one of them can't be weights.

        Weights have the axes [B, h, T_q, T_k], are above 0, and sum to 1.
        """
        pairs: list[tuple[Pair, Pair]] = []
        for question in self.wrong:
            given, right = self.given[question], self.behavior((), question[0])
            if isinstance(given, Exception) or isinstance(right, Exception):
                return False
            outputs, expected = ([(output, None) for output, _ in each] for each in (given, right))
            if not agree(outputs, expected, question[0].tolerance):
                return False
            pairs += zip(given, right, strict=True)
        beside = ((ours, theirs) for (_, ours), (_, theirs) in pairs)
        return any(
            ours is not None and theirs is not None and not _may_be(ours, theirs)
            for ours, theirs in beside
        )

    @property
    def other_length(self) -> tuple[list[int], list[int]] | None:
        """The shapes of an output and of its queries, if it has another number of tokens."""
        plain = (PROBES[0], PATHS[0])
        given, right = self.given[plain], self.behavior((), PROBES[0])
        if isinstance(given, Exception) or isinstance(right, Exception):
            return None
        (output, _), (expected, _) = given[0], right[0]
        if output is None or expected is None or output.dim() != 3:
            return None
        (B, T, d), wanted = output.shape, list(expected.shape)
        return ([B, T, d], wanted) if wanted == [B, wanted[1], d] and T != wanted[1] else None

    def edge(self, question: Question) -> str:
        """Return what a wrong answer means, if it is at an edge only."""
        probe, _ = question
        loud = isinstance(self.given[question], Exception)
        return probe.edge or (probe.loud if loud else "")

    @property
    def unasked(self) -> list[Probe]:
        """The probes that it can't be asked, but for those of a rare convention."""
        asked = {probe for probe, _ in self.given}
        return [probe for probe in PROBES if probe not in asked and not probe.optional]

    def names(self, questions: list[Question]) -> tuple[str, ...]:
        """Return the names of the probes, each once."""
        return tuple(dict.fromkeys(probe.name for probe, _ in questions))

    def explain(self, first: Question, limit: int = 2) -> Guess:
        """Return the exhibits that answer a question as it was answered; none if there are none.

        They must be right wherever the patient is, on the same path. Two are tried together where
        one doesn't do, up to `limit`, unless the module is wide.
        """
        same_path = [question for question in self.given if question[1] is first[1]]
        possible = self._possible(first[1])
        singles = ((exhibit,) for exhibit in possible if self.may_show((exhibit,), first[0]))
        for guesses in (singles, self._pairs(possible, first))[: limit if self.narrow else 1]:
            explaining = [
                guess
                for guess in guesses
                if self.patient.behaves_like(_steps(guess), first[0], self.given[first])
                and not any(self._contradicts(question, guess) for question in same_path)
                and all(self.agrees(question, guess) for question in self._beside(first))
            ]
            if len(explaining) == 1:
                return explaining[0]
            if explaining:
                return self._fittest(explaining, same_path)
        return ()

    def _fittest(self, guesses: list[Guess], questions: list[Question]) -> Guess:
        """Return the guess that explains most answers; of two bugs, those that do little else."""
        explained = [sum(self.agrees(q, guess) for q in questions) for guess in guesses]
        best = [g for g, n in zip(guesses, explained, strict=True) if n == max(explained)]
        if len(best[0]) == 1:
            return best[0]

        def shown(guess: Guess) -> int:
            return sum(self.may_show((e,), probe) for e in guess for probe, _ in questions)

        return min(best, key=shown)

    def _contradicts(self, question: Question, guess: Guess) -> bool:
        """Tell whether a question that exhibits get wrong was answered rightly."""
        if question in self.failed or not self.may_show(guess, question[0]):
            return False
        return not self.agrees(question, guess)

    def _beside(self, first: Question) -> list[Question]:
        """Return what an exhibit of padding must explain too: what padded queries see.

        It tells padding that is dropped from padding on the wrong axis.
        """
        probe, path = first
        if "key_mask" not in probe.needs:
            return []
        return [question for question in self.failed if question == (OF_PADDING, path)]

    @property
    def narrow(self) -> bool:
        """Whether the module is small enough to try every pair of exhibits."""
        return self.patient.first.setting.sizes.d_model <= NARROW

    def _possible(self, path: Path) -> list[Exhibit]:
        """Return the exhibits that are right on one sequence, if the patient is right there."""
        plain = (PROBES[0], path)
        wrong_there = plain in self.failed
        asked = self.patient.first
        excluded = set(OF_SCALE) if asked.stretched != 1 else set()  # they speak of the paper's
        if not asked.setting.always_causal and "causal" not in asked.takes:
            excluded.add(NOT_CAUSAL)  # which speaks of the triangle
        return [
            e
            for e in EXHIBITS
            if (wrong_there or not self.may_show((e,), PROBES[0])) and e not in excluded
        ]

    def _pairs(self, possible: list[Exhibit], first: Question) -> Iterator[Guess]:
        """Yield any two bugs that can be in one module, one of which shows in a question."""
        shown = {exhibit for exhibit in possible if self.may_show((exhibit,), first[0])}
        if (PROBES[0], first[1]) not in self.failed:  # little can cancel what is seen so late
            same_path = [question for question in self.given if question[1] is first[1]]
            shown = {e for e in shown if not any(self._contradicts(q, (e,)) for q in same_path)}
        if isinstance(self.given[first], Exception):  # one of them raises it by itself
            shown = {e for e in shown if isinstance(self.behavior((e,), first[0]), Exception)}
        for pair in combinations(possible, 2):
            if not set(pair[0].steps) & set(pair[1].steps) and shown & set(pair):
                yield pair


def _may_be(shown: Tensor, weights: Tensor) -> bool:
    """Tell whether what is shown may be weights, right or wrong."""
    if shown.shape != weights.shape or (shown < 0).any():
        return False
    return torch.allclose(shown.sum(-1), weights.sum(-1).to(shown), rtol=1e-3, atol=1e-3)


def _steps(guess: Guess) -> Steps:
    steps: dict[str, Any] = {}
    for exhibit in guess:
        steps |= exhibit.steps
    return tuple(sorted(steps.items()))
