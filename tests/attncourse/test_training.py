"""Training: the same numbers each time, what is learned from and what isn't, what is counted."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import asdict
from itertools import chain, pairwise

import pytest
import torch
import torch.nn.functional as F
from tools.refusing import assert_refused
from tools.tiny_task import echo

from attncourse import data
from attncourse.tasks import concord, pack
from attncourse.training import (
    GRID,
    RECIPES,
    Recipe,
    answer_loss,
    compare,
    digest,
    evaluate,
    held_out_sentences,
    loop,
    save,
    train,
)
from attncourse.training.__main__ import main
from attncourse.training.first_weights import initial_model
from attnlib import RMSNorm
from attnlib.model import TransformerModel

TINY = Recipe(
    "tiny",
    echo,
    {"d_model": 16, "num_heads": 2},
    steps=60,
    batch=16,
    lr=0.02,
    warmup=5,
    held_out=40,
)


def trained(recipe=TINY, **options):
    return train(recipe, **{"progress": False} | options)


def same_weights(a, b):
    pairs = zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


@pytest.fixture
def batches(monkeypatch):
    """Note the sentences of each batch that is learned from."""
    noted = []

    def note(sentences, **options):
        noted.append([sentence.ids for sentence in sentences])
        return pack(sentences, **options)

    monkeypatch.setattr(loop, "pack", note)
    return noted


# --- one seed, one training ----------------------------------------------------------------------


@pytest.mark.parametrize("pool", [None, 100])
def test_a_seed_gives_the_same_numbers_each_time(pool):
    recipe = TINY.changed(pool=pool)
    first, again, other = trained(recipe), trained(recipe), trained(recipe, seed=1)
    assert first.losses == again.losses and first.final == again.final
    assert same_weights(first, again)
    assert first.losses[0] != other.losses[0] and not same_weights(first, other)


def test_the_same_numbers_whatever_torch_was_told_before():
    wanted = trained()
    torch.manual_seed(99)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            assert trained().losses == wanted.losses
        assert (torch.get_default_dtype(), torch.get_num_threads()) == (torch.float64, 2)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)


def test_a_training_leaves_the_random_numbers_alone():
    state = torch.get_rng_state()
    trained(TINY.changed(pool=100, model={"dropout": 0.1}))
    assert torch.equal(torch.get_rng_state(), state)


def test_looking_on_and_stopping_change_nothing():
    whole = trained(TINY.changed(model={"dropout": 0.1}))
    watched = trained(TINY.changed(model={"dropout": 0.1}), evaluate_every=25)
    assert same_weights(whole, watched) and whole.losses == watched.losses
    assert list(watched.evaluations) == [25, 50, 60] and list(whole.evaluations) == [60]
    stopped = trained(TINY.changed(model={"dropout": 0.1}), stop=25)
    assert stopped.losses == whole.losses[:25]
    assert stopped.final == watched.evaluations[25]


def test_what_is_watched_is_asked_of_each_evaluated_model_and_changes_nothing():
    def watch(model):
        torch.rand(3)
        seen.append((model.training, torch.is_grad_enabled()))
        return model.token_embedding.weight.sum().item()

    seen = []
    alone = trained(TINY.changed(model={"dropout": 0.1}), evaluate_every=25)
    watched = trained(TINY.changed(model={"dropout": 0.1}), evaluate_every=25, watch=watch)
    assert same_weights(alone, watched) and alone.watched == {}
    assert seen == [(False, False)] * 3
    assert list(watched.watched) == [25, 50, 60] and len(set(watched.watched.values())) == 3
    assert watched.watched[60] == watched.model.token_embedding.weight.sum().item()


def test_what_was_trained_says_so_in_a_line():
    assert re.fullmatch(
        r"Trained\(tiny, seed 3: 60 steps in \d+\.\d s, loss 0\.\d{3}, joint [01]\.\d{3}, "
        r"digest [0-9a-f]{8}\)",
        repr(trained(seed=3)),
    )


def test_a_model_of_ones_own_is_trained_the_same_way():
    def make(task, d_model, num_heads):
        made = TransformerModel.of_sizes(task, d_model, num_heads)
        made.token_embedding.weight.data *= 50
        return made

    own = trained(make=make)
    assert own.losses != trained().losses and own.final.joint > 0.9


def test_it_learns():
    end = trained().final
    assert end.joint > 0.9 > evaluate(untrained(), held_out_sentences(TINY)).joint


# --- what is learned from ------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [None, 100])
def test_what_is_held_out_is_never_learned_from(batches, pool):
    trained(TINY.changed(pool=pool, held_out=300))
    held_out = {sentence.ids for sentence in held_out_sentences(TINY.changed(held_out=300))}
    assert len(batches) == 60 and {len(batch) for batch in batches} == {16}
    assert held_out.isdisjoint(ids for batch in batches for ids in batch)


def test_all_seeds_are_evaluated_on_the_same_sentences_and_learn_from_others(batches):
    trained(seed=0), trained(seed=1)
    assert held_out_sentences(TINY) == held_out_sentences(TINY.changed(batch=8, steps=3))
    assert not any(a == b for a, b in zip(batches[:60], batches[60:], strict=True))


def test_a_pool_is_gone_through_again_and_again_each_time_in_another_order(batches):
    trained(TINY.changed(pool=48, steps=9))
    rounds = [[*chain(*batches[i : i + 3])] for i in (0, 3, 6)]
    assert sorted(rounds[0]) == sorted(rounds[1]) == sorted(rounds[2])
    assert rounds[0] != rounds[1] != rounds[2]
    trained(TINY.changed(pool=48, steps=9), seed=1)
    assert sorted(chain(*batches[9:12])) == sorted(rounds[0]) and batches[9:12] != batches[:3]


def test_a_pool_that_is_no_multiple_of_a_batch_is_used_up_all_the_same(batches):
    trained(TINY.changed(pool=40, steps=5))
    whole = [*chain(*batches)]
    assert sorted(whole[:40]) == sorted(whole[40:])


# --- steps ---------------------------------------------------------------------------------------


def test_the_learning_rate_of_concord():
    rates = [RECIPES["concord"].learning_rate(step) for step in range(400)]
    assert rates[0] == pytest.approx(4e-3 / 80) and rates[39] == pytest.approx(2e-3)
    assert rates[79:281] == [4e-3] * 202
    assert rates[399] == pytest.approx(0.02 * 4e-3)
    falls = [a - b for a, b in pairwise(rates[280:])]
    assert falls == pytest.approx([falls[0]] * 119) and falls[0] > 0


@pytest.mark.parametrize(
    ("changes", "rates"),
    [
        ({"steps": 1, "warmup": 0}, [1]),
        ({"steps": 2, "warmup": 4, "falls_at": 1}, [0.25, 0.5]),
        ({"steps": 3, "warmup": 0, "falls_at": 0, "ends_at": 0}, [1, 0.5, 0]),
        ({"steps": 4, "warmup": 4, "falls_at": 0.25, "ends_at": 0}, [0.25, 0.5, 0.5, 0]),
    ],
)
def test_learning_rates_at_the_edges(changes, rates):
    recipe = TINY.changed(lr=2.0, **changes)
    found = [recipe.learning_rate(step) / 2 for step in range(recipe.steps)]
    assert found == pytest.approx(rates)


def test_two_steps_are_those_of_adamw(batches):
    changes = {"steps": 2, "warmup": 2, "betas": (0.7, 0.9), "weight_decay": 0.1, "falls_at": 1.0}
    recipe = TINY.changed(task=concord, **changes)  # padding would be looked at
    result = trained(recipe, seed=4)
    model = initial_model(recipe, 4, TransformerModel.of_sizes)
    sizes = [(torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]
    for step, ids in enumerate(batches):
        drawn = concord.sentences(32, seed=4, without=held_out_sentences(recipe))
        sentences = {sentence.ids: sentence for sentence in drawn}
        batch = pack([sentences[one] for one in ids])
        loss = answer_loss(model(batch.tokens, key_mask=batch.key_mask).logits, batch.answers)
        assert result.losses[step] == pytest.approx(loss.item(), rel=1e-12)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        lr = recipe.learning_rate(step)
        for p, g, (m, v) in zip(model.parameters(), gradients, sizes, strict=True):
            m.mul_(0.7).add_(0.3 * g)
            v.mul_(0.9).add_(0.1 * g**2)
            mean, square = m / (1 - 0.7 ** (step + 1)), v / (1 - 0.9 ** (step + 1))
            p.data = p.data * (1 - lr * 0.1) - lr * mean / (square.sqrt() + 1e-8)
            p.data = (p.data / GRID).round() * GRID
    assert digest(model) == result.digest


def test_the_loss_is_the_mean_over_all_answers():
    logits = {"a": torch.randn(2, 3, 4), "b": torch.randn(2, 3, 2)}
    answers = {
        "a": torch.tensor([[1, -1, 3], [0, -1, -1]]),
        "b": torch.tensor([[-1] * 3, [1, 0, -1]]),
    }
    each = [
        -F.log_softmax(logits[name][i, j], -1)[wanted]
        for name in answers
        for i, row in enumerate(answers[name].tolist())
        for j, wanted in enumerate(row)
        if wanted >= 0
    ]
    assert len(each) == 5
    torch.testing.assert_close(answer_loss(logits, answers), torch.stack(each).mean())


# --- what a model gets right ---------------------------------------------------------------------


def untrained(task=echo, **options):
    return TransformerModel.of_sizes(task, **{"d_model": 16, "num_heads": 2} | options)


def test_an_evaluation_counts_word_by_word():
    model, sentences = untrained(concord), concord.sentences(600, seed=5)
    found = evaluate(model, sentences, concord.relations)
    losses, whole, right = [], [], {name: [] for name in concord.readouts}
    of_relation = {relation.name: [] for relation in concord.relations}
    for sentence in sentences:
        logits = model(torch.tensor([sentence.ids])).logits
        correct = {}
        for name, answers in sentence.answers.items():
            for word, answer in enumerate(answers):
                if answer is not None:
                    row = logits[name][0, word]
                    losses.append(-F.log_softmax(row, -1)[answer].item())
                    correct[name, word] = row.argmax().item() == answer
                    right[name].append(correct[name, word])
        for word in range(len(sentence)):
            own = [yes for (_, place), yes in correct.items() if place == word]
            whole += [all(own)] if own else []
        for relation in concord.relations:
            of_relation[relation.name] += [
                correct[relation.readout, word] for word in sentence.partners[relation.name]
            ]
    mean = lambda counts: sum(counts) / len(counts)  # noqa: E731
    assert found.loss == pytest.approx(mean(losses), rel=1e-5)
    assert found.joint == mean(whole)
    assert found.readouts == {name: mean(counts) for name, counts in right.items()}
    assert found.relations == {name: mean(counts) for name, counts in of_relation.items()}
    assert 0 < found.joint < 0.5  # not all alike


def test_a_relation_that_no_sentence_has_is_left_out():
    plain = [s for s in concord.sentences(60, seed=1) if not s.partners["their>owner"]]
    found = evaluate(untrained(concord), plain, concord.relations)
    assert "their>owner" not in found.relations and "determiner>noun" in found.relations


def test_muted_heads_are_muted_in_an_evaluation():
    model, sentences = trained().model, held_out_sentences(TINY)
    without = evaluate(model, sentences, head_masks=[torch.zeros(2)])
    assert without.joint < 0.6 < evaluate(model, sentences).joint


def test_an_evaluation_leaves_the_model_as_it_was():
    model = untrained(dropout=0.5).train()
    first, again = (evaluate(model, held_out_sentences(TINY)) for _ in range(2))
    assert first == again and model.training
    assert all(parameter.grad is None for parameter in model.parameters())


# --- progress ------------------------------------------------------------------------------------

SHOW = """
from tools.tiny_task import echo
from attncourse.training import Recipe, train
train(Recipe("tiny", echo, {"d_model": 4, "num_heads": 1}, steps=3, held_out=5), seed=7%s)
"""


@pytest.mark.parametrize(
    ("options", "environment", "shown"),
    [("", {}, True), (", progress=False", {}, False), ("", {"TQDM_DISABLE": "1"}, False)],
)
def test_a_bar_shows_steps_and_loss_where_it_is_wanted(options, environment, shown):
    own = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    paths = os.pathsep.join(["tests", *filter(None, [own.get("PYTHONPATH")])])
    result = subprocess.run(
        [sys.executable, "-c", SHOW % options], env=own | environment | {"PYTHONPATH": paths},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout == ""
    assert ("tiny, seed 7" in result.stderr and "3/3" in result.stderr) == shown
    assert ("loss=" in result.stderr) == shown and bool(result.stderr) == shown


# --- recipes, and what is saved of them ----------------------------------------------------------


def test_every_recipe_can_be_told_as_json():
    for name, recipe in RECIPES.items():
        told = json.loads(json.dumps(recipe.as_json()))
        assert told["name"] == name and told["task"] == recipe.task.name
    assert TINY.changed(model={"norm": RMSNorm}).as_json()["model"]["norm"] == "RMSNorm"


@pytest.mark.parametrize(("recipe", "seed"), data.saved())
def test_what_is_saved_was_made_by_its_recipe(recipe, seed):
    """A short piece: its losses are the card's, to the last digit that it has."""
    card = data.read_card(recipe, seed)
    short = trained(RECIPES[recipe], seed=seed, stop=20)
    assert [round(loss, 6) for loss in short.losses] == pytest.approx(card.losses[:20], abs=2e-6)


@pytest.mark.parametrize(("recipe", "seed"), data.saved())
def test_what_is_saved_gets_right_what_its_card_says(recipe, seed):
    model, card = data.load(recipe, seed)
    task, sentences = RECIPES[recipe].task, held_out_sentences(RECIPES[recipe])
    found = asdict(evaluate(model, sentences, task.relations))
    for name in ("loss", "joint"):
        assert found[name] == pytest.approx(card.final[name], abs=1e-4)
    for name in ("readouts", "relations"):
        assert found[name] == pytest.approx(card.final[name], abs=1e-3)
    assert card.losses[0] > math.log(2) and len(card.losses) == card.steps


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Let what is saved go to a folder of this test's."""
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    return tmp_path


def test_the_command_saves_and_finds_the_same_again(folder, capsys):
    assert main(["tiny", "--quiet", "--save"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "tiny-seed0.json", "tiny-seed0.safetensors"
    ]  # fmt: skip
    for arguments in (["--seed", "0"], ["--stop", "20"]):
        assert main(["tiny", "--quiet", *arguments]) == 0
    assert "DIFFERS" not in capsys.readouterr().out
    model, card = data.load("tiny")
    again = trained()
    assert [round(loss, 6) for loss in again.losses] == card.losses
    torch.testing.assert_close(model.state_dict(), again.model.state_dict(), rtol=0, atol=0)
    assert card.digest == again.digest == digest(model)
    assert card.command == "python -m attncourse.training tiny --seed 0 --save"
    assert list(card.evaluations) == ["25", "50", "60"]
    assert card.size == (folder / "tiny-seed0.safetensors").stat().st_size


def test_the_command_notices_other_numbers(folder, capsys):
    save(trained())
    card = folder / "tiny-seed0.json"
    told = json.loads(card.read_text())
    told["losses"][3] += 0.01
    told["evaluations"]["60"]["readouts"]["before"] -= 0.2
    card.write_text(json.dumps(told))
    assert main(["tiny", "--quiet"]) == 1
    rows = capsys.readouterr().out.splitlines()
    differing = [row for row in rows if "DIFFERS" in row]
    assert [row.split("  ")[0] for row in differing] == [
        "loss of step 3, the furthest apart", "readout before"
    ]  # fmt: skip


def test_another_digest_is_told_with_both_values(folder, capsys):
    card = save(trained())
    path = folder / "tiny-seed0.json"
    path.write_text(path.read_text().replace(card.digest, "0" * 64))
    assert main(["tiny", "--quiet"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if card.digest in line and "DIFFERS" in line]
    assert [line for line in lines if "0" * 64 in line]


def test_the_command_says_when_there_is_nothing_to_compare(folder, capsys):
    assert main(["tiny", "--quiet", "--seed", "3", "--stop", "5"]) == 0
    assert "nothing to compare" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--save", "--stop", "5"], ["60 steps", "got 5"]),
        (["--stop", "61"], ["stop", "60", "61"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--save", "--heads", "1"], ["--heads", "--save"]),
    ],
)
def test_a_command_that_cannot_be_followed_is_refused(folder, capsys, arguments, words):
    assert main(["tiny", "--quiet", *arguments]) == 2
    captured = capsys.readouterr()
    assert all(word in captured.err for word in words), captured.err
    assert list(folder.iterdir()) == []


def test_an_unknown_recipe_is_refused_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["no-such"])
    assert caught.value.code == 2 and "'concord'" in capsys.readouterr().err


def test_weights_of_a_changed_recipe_are_not_compared(folder, monkeypatch, capsys):
    save(trained())
    monkeypatch.setitem(RECIPES, "tiny", TINY.changed(lr=0.03))
    assert main(["tiny", "--quiet", "--stop", "3"]) == 2
    message = capsys.readouterr().err
    assert all(word in message for word in ("lr=0.03", "0.02", "--save")), message


def test_what_is_not_repeatable_is_not_saved(folder):
    quick = trained(TINY.changed(repeatable=False))
    assert quick.digest is None
    assert_refused(lambda: save(quick), ["repeatable", "float32"])
    assert list(folder.iterdir()) == []


def test_a_card_without_a_digest_is_refused_with_the_way_to_make_it_anew(folder):
    card = save(trained())
    path = folder / "tiny-seed0.json"
    told = json.loads(path.read_text())
    del told["digest"]
    path.write_text(json.dumps(told))
    assert_refused(lambda: data.load("tiny"), ["changed or damaged", "digest", card.command])


def test_a_card_is_compared_with_its_own_seed_alone(folder):
    card = save(trained())
    assert_refused(lambda: compare(trained(seed=1), card), ["card", "seed 1", "seed 0"])


# --- bad input -----------------------------------------------------------------------------------

CASES = {
    "a recipe's name": (lambda: train("concord"), ["recipe", "RECIPES", "'concord'"]),
    "a negative seed": (lambda: trained(seed=-1), ["seed", "-1"]),
    "a large seed": (lambda: trained(seed=2**31), ["seed", "2^31"]),
    "a seed as text": (lambda: trained(seed="0"), ["seed", "str"]),
    "progress as text": (lambda: trained(progress="no"), ["progress", "str"]),
    "no evaluation": (lambda: trained(evaluate_every=0), ["evaluate_every", "0"]),
    "nothing to watch with": (lambda: trained(watch="loss"), ["watch", "'loss'"]),
    "no step": (lambda: trained(stop=0), ["stop", "0"]),
    "too many steps": (lambda: trained(stop=61), ["stop", "60", "61"]),
    "an unknown option": (lambda: trained(TINY.changed(model={"rope": 1})), ["rope"]),
    "heads that don't divide": (lambda: trained(TINY.changed(model={"num_heads": 3})),
        ["num_heads=3"]),
    "a task's name": (lambda: Recipe("x", "concord"), ["task", "str"]),
    "no name": (lambda: Recipe(3, echo), ["name", "int"]),
    "options as list": (lambda: Recipe("x", echo, [1]), ["model", "list"]),
    "no steps": (lambda: TINY.changed(steps=0), ["steps", "0"]),
    "steps as float": (lambda: TINY.changed(steps=1e3), ["steps", "float"]),
    "no held-out sentence": (lambda: TINY.changed(held_out=0), ["held_out", "0"]),
    "a share as percent": (lambda: TINY.changed(falls_at=70), ["falls_at", "70"]),
    "a share below 0": (lambda: TINY.changed(ends_at=-0.1), ["ends_at", "-0.1"]),
    "repeatable as text": (lambda: TINY.changed(repeatable="no"), ["repeatable", "str"]),
    "no learning rate": (lambda: TINY.changed(lr=0), ["lr", "above 0"]),
    "one beta": (lambda: TINY.changed(betas=0.9), ["betas", "0.9"]),
    "a negative warm-up": (lambda: TINY.changed(warmup=-1), ["warmup", "-1"]),
    "a pool below a batch": (lambda: TINY.changed(pool=15), ["pool=15", "batch=16"]),
    "an unknown value": (lambda: TINY.changed(epochs=3), ["epochs"]),
    "no sentences": (lambda: evaluate(untrained(), []), ["sentences", "at least one"]),
    "sentences as a number": (lambda: evaluate(untrained(), 3), ["sentences", "int"]),
    "a sentence as text": (lambda: evaluate(untrained(), ["a b"]), ["sentences", "'a b'"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    assert_refused(*CASES[name])
