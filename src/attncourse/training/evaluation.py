"""What a model gets right: each readout, each relation, all answers of a word together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attncourse.tasks import Batch, Relation, Sentence, pack
from attnlib.checks import checked_list
from attnlib.model import TransformerModel
from attnlib.model.generation import in_evaluation

AT_ONCE = 250  # sentences that go through the model together


@dataclass(frozen=True)
class Evaluation:
    """What a model gets right of some sentences.

    `relations` has, for each relation that some sentence has, the share of the answers that are
    right where a word must find its partner.
    """

    loss: float  # mean cross-entropy of all answers, in nats
    joint: float  # share of the words with answers whose answers are all right
    readouts: dict[str, float]  # share of each readout's answers that are right
    relations: dict[str, float]


def answer_loss(logits: dict[str, Tensor], answers: dict[str, Tensor]) -> Tensor:
    """Return the mean cross-entropy of all answers, whichever readout gives them.

    Args:
        logits: of each readout, [B, T, n].
        answers: of each readout, int64 [B, T], -1 where a word has none.
    """
    total = sum(
        F.cross_entropy(
            logits[name].flatten(0, 1), wanted.flatten(), ignore_index=-1, reduction="sum"
        )
        for name, wanted in answers.items()
    )
    number = sum((wanted >= 0).sum() for wanted in answers.values())
    return torch.as_tensor(total / number)


@torch.no_grad()
def evaluate(
    model: TransformerModel,
    sentences: Sequence[Sentence],
    relations: Sequence[Relation] = (),
    *,
    head_masks: Sequence[Tensor | None] | Tensor | None = None,
) -> Evaluation:
    """Ask a model about sentences, and count what it gets right.

    Args:
        model: whose readouts are those of the sentences' answers.
        sentences: of the model's task, at least one that has an answer.
        relations: those to be counted one by one, such as `task.relations`.
        head_masks: as for `TransformerModel.forward`, to mute heads.

    Raises:
        TypeError, ValueError: no sentences, sentences without answers, or what the model refuses.
    """
    sentences = checked_list("sentences", sentences)
    if not sentences:
        raise ValueError("sentences must hold at least one, got none")
    loss, number = 0.0, 0
    right: dict[str, list[bool]] = {name: [] for name in model.readouts}
    whole: list[bool] = []
    found: dict[str, list[bool]] = {relation.name: [] for relation in relations}
    with in_evaluation(model):
        for start in range(0, len(sentences), AT_ONCE):
            some = sentences[start : start + AT_ONCE]
            batch = pack(some)
            logits = model(batch.tokens, key_mask=batch.key_mask, head_masks=head_masks).logits
            own = sum(int((wanted >= 0).sum()) for wanted in batch.answers.values())
            if own:
                loss += answer_loss(logits, batch.answers).item() * own
            number += own
            correct = {
                name: logits[name].argmax(-1) == batch.answers[name] for name in batch.answers
            }
            for name, wanted in batch.answers.items():
                right[name] += correct[name][wanted >= 0].tolist()
            whole += _all_right(batch, correct)
            for relation in relations:
                has_partner = batch.partners[relation.name] >= 0
                found[relation.name] += correct[relation.readout][has_partner].tolist()
    if not number:
        raise ValueError(f"sentences must have answers, got {len(sentences)} without any")
    return Evaluation(loss / number, _share(whole), _shares(right), _shares(found))


def _all_right(batch: Batch, correct: dict[str, Tensor]) -> list[bool]:
    """Return for each word that has answers whether all of them are right."""
    wanted = torch.stack([answers >= 0 for answers in batch.answers.values()])
    given = torch.stack([correct[name] for name in batch.answers])
    return (given | ~wanted).all(0)[wanted.any(0)].tolist()


def _shares(counts: dict[str, list[bool]]) -> dict[str, float]:
    return {name: _share(all_) for name, all_ in counts.items() if all_}


def _share(counts: list[bool]) -> float:
    return sum(counts) / len(counts)
