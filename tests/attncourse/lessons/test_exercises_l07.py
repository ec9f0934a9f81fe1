"""Checks of L07: right answers in other words, what is nearly right, and the numbers asked for."""

from fractions import Fraction

import torch
import torch.nn.functional as F
from tools.verdicts import PASSES, verdicts

from attncourse.lessons import l07
from attncourse.lessons.l07.assembling import assembled
from attncourse.lessons.l07.counting import RIGHT as PARTS
from attncourse.lessons.l07.judging import REACH
from attnlib import RMSNorm
from attnlib.model import GPT


def by_places(model, ids):
    """Logits that are shifted in place of ids, and a mean over what is no padding."""
    logits, targets = model(ids.clamp(min=0))[:, :-1], ids[:, 1:]
    log_p = logits.log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return -log_p[targets >= 0].mean()


def masked_by(low):
    def answer(logits, temperature, top_k):
        cut = logits < logits.topk(top_k).values[-1]
        return (logits / temperature).masked_fill(cut, low).softmax(-1)

    return answer


test_answers = verdicts(
    {
        l07.letters_back: {
            "Doubling: in bol?": [REACH | {"doubling": "all"}],
            "Ending: the letter that decides": [REACH | {"ending": "3"}],
        },
        l07.assembly: {
            "got tuple": [lambda ids, t, p, blocks, n, r: r(n(blocks[0](t[ids], causal=True)))]
        },
        l07.shifted_loss: {
            PASSES: [by_places, lambda model, ids: by_places(model, ids).item()],
            "got -1": [lambda model, ids: model(ids[:, :-1]).mean()],
            "Target -1": [
                lambda model, ids: F.cross_entropy(model(ids[:, :-1].relu()).mT, ids[:, 1:])
            ],
        },
        l07.probabilities_by_hand: {
            PASSES: [[Fraction(n, 21) for n in (3, 6, 12, 1, 4, 16, 0, 7, 14)]]
        },
        l07.next_probabilities: {PASSES: [masked_by(-1e9)], "off by up to": [masked_by(-20.0)]},
    }
)


def test_the_assembled_model_is_attnlibs():
    gpt, ids = GPT(11, 9, 8, 2, num_layers=3, bias=True), torch.randint(11, (2, 7))
    parts = (
        gpt.token_embedding.weight, gpt.position_embedding.weight, gpt.blocks, gpt.final_norm,
        gpt.readouts["next"],
    )  # fmt: skip
    torch.testing.assert_close(assembled(ids, *parts), gpt(ids).logits["next"])


def test_microgpts_parts_are_those_of_the_model():
    gpt = GPT(27, 16, 16, 4, norm=lambda d, **o: RMSNorm(d, gain=False, **o), activation="relu")
    (block,) = gpt.blocks
    within = block.attention, block.feed_forward, gpt.readouts
    modules = (gpt.token_embedding, gpt.position_embedding, *within)
    found = [sum(p.numel() for p in module.parameters()) for module in modules]
    assert found == PARTS.tolist() and sum(found) == 4192
    assert sum(p.numel() for p in gpt.parameters()) == 4192
