"""Which limits, in which situation, a crossing of them goes wrong on first."""

from dataclasses import dataclass, replace
from functools import cache

from attndoctor.comparing import NEAR, agree, mostly
from attndoctor.crossings import SAYS, Crossing, Group, Situation
from attndoctor.naming import Answers, Question
from attndoctor.probes import Answer, Probe


@dataclass(frozen=True)
class Cell:
    """The first of a crossing's cells that was answered wrongly.

    part: which of the answers are this cell's.
    """

    question: Question
    answers: Answers
    situation: Situation
    group: Group
    part: slice

    @classmethod
    def first_wrong(cls, question: Question, answers: Answers) -> "Cell | None":
        """Return it, if the question is a crossing that was answered with numbers."""
        probe, _ = question
        if not isinstance(probe.ask, Crossing):
            return None
        cells = probe.ask.cells(answers.patient.first.takes)
        right = answers.behavior((), probe)
        assert not isinstance(right, Exception)
        each = len(right) // len(cells)
        for i, (situation, group) in enumerate(cells):
            cell = cls(question, answers, situation, group, slice(i * each, (i + 1) * each))
            if not cell._answers_as(right):
                return cell
        return None

    @property
    def says(self) -> str:
        """Say which it is."""
        limits = " and ".join(SAYS[limit] for limit in self.group)
        return ", ".join(words for words in (limits, self.situation.says) if words)

    @property
    def is_near(self) -> bool:
        """Whether most numbers are nearly right, as where a little comes through a limit."""
        given, right = self.answers.given[self.question], self._behavior(self.question[0])
        if isinstance(given, Exception) or isinstance(right, Exception):
            return False
        return mostly(given[self.part], right[self.part]) < NEAR

    @property
    def spoils_whole_samples(self) -> bool:
        """Whether a sample that has no padding is wrong too, though padding is all that limits."""
        given, right = self.answers.given[self.question], self._behavior(self.question[0])
        if isinstance(given, Exception) or isinstance(right, Exception):
            return False
        if self.group != ("key_mask",) or self.situation.says:  # elsewhere it may be another thing
            return False
        (ours, _), (theirs, _) = given[self.part][0], right[self.part][0]
        if ours is None or theirs is None or ours.shape != theirs.shape:
            return False
        whole = self.situation.real.all(1)
        pairs = [(ours[whole], None)], [(theirs[whole], None)]
        return not agree(*pairs, self.question[0].tolerance)

    @property
    def dropped(self) -> str | None:
        """Say which limit has no effect, if without it the answer would be right."""
        for limit in self.group:
            if self._answers_as(self._behavior(_without(self.question[0], limit))):
                others = [SAYS[other] for other in self.group if other != limit]
                beside = f" beside {' and '.join(others)}" if others else ""
                return (
                    f"It answers as it should without {SAYS[limit]}: that is dropped{beside}. "
                    "A look must be allowed by all that is handed over, at all sizes."
                )
        return None

    def _behavior(self, probe: Probe) -> Answer:
        return self.answers.behavior((), probe)

    def _answers_as(self, other: Answer) -> bool:
        given = self.answers.given[self.question]
        if isinstance(given, Exception) or isinstance(other, Exception):
            return False
        return agree(given[self.part], other[self.part], self.question[0].tolerance)


@cache  # so that answers are remembered
def _without(probe: Probe, limit: str) -> Probe:
    """Return a crossing that forgets a limit."""
    assert isinstance(probe.ask, Crossing)
    return replace(probe, ask=replace(probe.ask, forgets=frozenset({limit})))
