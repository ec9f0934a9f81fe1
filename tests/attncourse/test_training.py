"""Training: the same numbers each time, what is learned from and what isn't, what is saved."""

import json
import sys
from collections import defaultdict
from dataclasses import asdict
from functools import partial
from io import StringIO
from itertools import chain, pairwise

import pytest
import torch
from tools.refusing import assert_named, refusals
from tools.tiny_task import TINY, echo, tiny_training

from attncourse import data
from attncourse.tasks import concord, lookup, pack
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
from attncourse.training.changed_world import VARIABLE
from attncourse.training.first_weights import initial_model
from attnlib import RMSNorm
from attnlib.model import TransformerModel

SHORT = TINY.changed(steps=12, model={"dropout": 0.1})


def trained(recipe=SHORT, **options):
    return train(recipe, **{"progress": False} | options)


def untrained(task=echo, **options):
    return TransformerModel.of_sizes(task, **{"d_model": 16, "num_heads": 2} | options)


@pytest.fixture
def batches(monkeypatch):
    """Note the sentences of each batch that is learned from."""
    noted = []

    def note(sentences, **options):
        noted.append([sentence.ids for sentence in sentences])
        return pack(sentences, **options)

    monkeypatch.setattr(loop, "pack", note)
    return noted


@pytest.mark.parametrize("pool", [None, 100])
def test_a_seed_gives_the_same_numbers_whatever_torch_was_told(pool):
    recipe = SHORT.changed(pool=pool)
    first, other = trained(recipe), trained(recipe, seed=1)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            again = trained(recipe)
        assert (torch.get_default_dtype(), torch.get_num_threads()) == (torch.float64, 2)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)
    assert torch.equal(torch.get_rng_state(), state)
    assert (first.losses, first.final, first.digest) == (again.losses, again.final, again.digest)
    assert first.losses[0] != other.losses[0] and first.digest != other.digest
    assert digest(first.model) == first.digest


def test_looking_on_and_stopping_change_nothing():
    watched, alone = tiny_training(), trained(TINY)
    assert watched.digest == alone.digest and watched.losses == alone.losses
    assert list(watched.evaluations) == list(watched.watched) == [25, 50, 60]
    assert list(alone.evaluations) == [60] and alone.watched == {}
    modes, gradients, sums = zip(*watched.watched.values(), strict=True)
    assert not any(modes) and not any(gradients) and len({*sums}) == 3
    assert sums[-1] == watched.model.token_embedding.weight.sum().item()
    stopped = trained(TINY, stop=25)
    assert stopped.losses == alone.losses[:25] and stopped.final == watched.evaluations[25]
    told = (f"joint {watched.final.joint:.3f}", watched.digest[:8], "tiny", "seed 0", "60 steps")
    assert all(part in repr(watched) for part in told) and not watched.model.training


def test_a_quick_training_is_the_same_but_for_rounding():
    seen, recipe = [], TINY.changed(steps=12, repeatable=False)
    quick = trained(recipe, watch=lambda model: seen.append(model.final_norm.gain.dtype))
    assert quick.losses == pytest.approx(trained(TINY.changed(steps=12)).losses, abs=1e-3)
    assert quick.digest is None and not quick.model.training and {*seen} == {torch.float32}


@pytest.mark.parametrize("pool", [None, 100])
def test_what_is_held_out_is_never_learned_from(batches, pool):
    recipe = TINY.changed(pool=pool, held_out=300)
    for seed in (0, 1):
        trained(recipe, seed=seed)
    held_out = {sentence.ids for sentence in held_out_sentences(recipe)}
    assert len(batches) == 120 and {len(batch) for batch in batches} == {16}
    assert held_out.isdisjoint(ids for batch in batches for ids in batch)
    assert not any(a == b for a, b in zip(batches[:60], batches[60:], strict=True))
    assert held_out_sentences(TINY) == held_out_sentences(TINY.changed(batch=8, steps=3))


@pytest.mark.parametrize("pool", [48, 40])  # a multiple of a batch, and none
def test_a_pool_is_gone_through_again_and_again_each_time_in_another_order(batches, pool):
    recipe = SHORT.changed(pool=pool, steps=10)
    for seed in (0, 1):
        trained(recipe, seed=seed)
    first, other = [*chain(*batches[:10])], [*chain(*batches[10:])]
    rounds = [first[i : i + pool] for i in range(0, 160 - pool, pool)] + [other[:pool]]
    assert all(sorted(one) == sorted(rounds[0]) for one in rounds)
    assert all(a != b for a, b in pairwise(rounds)) and first != other


@pytest.mark.parametrize(
    ("changes", "rates"),  # of all steps, as shares of the recipe's rate
    [
        ({"steps": 2, "warmup": 4, "falls_at": 1}, [0.25, 0.5]),
        ({"steps": 3, "warmup": 0, "falls_at": 0, "ends_at": 0}, [1, 0.5, 0]),
        ({"steps": 4, "warmup": 4, "falls_at": 0.25, "ends_at": 0}, [0.25, 0.5, 0.5, 0]),
        ({"steps": 6, "warmup": 2, "falls_at": 0.5}, [0.5, 1, 1, 1, 0.51, 0.02]),
    ],
)
def test_learning_rates_rise_stay_and_fall(changes, rates):
    recipe = TINY.changed(lr=2.0, **changes)
    assert [recipe.learning_rate(step) / 2 for step in range(len(rates))] == pytest.approx(rates)


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


def test_a_bar_shows_steps_and_loss_where_it_is_wanted(monkeypatch):
    auto, screen = pytest.importorskip("tqdm.auto"), StringIO()
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(auto, "tqdm", partial(auto.tqdm, file=screen))
    trained(SHORT)
    assert screen.getvalue() == ""
    result = trained(SHORT, seed=7, progress=True)
    shown = screen.getvalue().split("\r")[-1]
    parts = ("tiny, seed 7: 100%", " 12/12 ", f"loss={result.losses[-1]:.3f}")
    assert all(part in shown for part in parts), shown
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"^progress=True .* pip install tqdm"):
        trained(SHORT, progress=True)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    trained(SHORT, progress=True)


@pytest.mark.parametrize("task", [concord, lookup(values=4)])
def test_an_evaluation_counts_word_by_word(task):
    model, sentences = untrained(task, dropout=0.5).train(), task.sentences(600, seed=5)
    part = model.final_norm.eval()
    found = evaluate(model, sentences, task.relations)
    assert model.training and not part.training and all(p.grad is None for p in model.parameters())
    model.eval()
    losses, right = [], defaultdict(list)
    for sentence in sentences:
        logits = model(torch.tensor([sentence.ids])).logits
        words = defaultdict(dict)  # word -> readout -> whether its answer is right
        for name, answers in sentence.answers.items():
            for word, answer in enumerate(answers):
                if answer is not None:
                    row = logits[name][0, word]
                    losses.append(-row.log_softmax(-1)[answer].item())
                    words[word][name] = row.argmax().item() == answer
                    right[name].append(words[word][name])
        right["joint"] += [all(correct.values()) for correct in words.values()]
        for one in task.relations:
            right[one.name] += [words[word][one.readout] for word in sentence.partners[one.name]]
    assert found.loss == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    shares = {name: sum(counts) / len(counts) for name, counts in right.items()}
    assert found.readouts | found.relations | {"joint": found.joint} == shares
    assert [*found.readouts] == [*task.readouts]
    assert 0 < found.joint < 0.5  # not all alike


def test_an_evaluation_mutes_heads_and_leaves_out_what_no_sentence_has():
    plain = [s for s in concord.sentences(600, seed=1) if not s.partners["their>owner"]]
    found = evaluate(untrained(concord), plain, concord.relations)
    assert "their>owner" not in found.relations and "determiner>noun" in found.relations
    model, sentences = tiny_training().model, held_out_sentences(TINY)
    without = evaluate(model, iter(sentences), head_masks=[torch.zeros(2)])
    assert without.joint < 0.6 and evaluate(model, sentences).joint > 0.9


def test_every_recipe_can_be_told_as_json():
    for name, recipe in RECIPES.items():
        assert json.loads(json.dumps(recipe.as_json()))["name"] == name
    assert TINY.changed(model={"norm": RMSNorm}).as_json()["model"]["norm"] == "RMSNorm"


@pytest.mark.parametrize(("recipe", "seed"), data.saved())
def test_a_card_says_how_its_weights_were_made_and_what_they_get_right(recipe, seed):
    state = torch.get_rng_state()
    model, card = data.load(recipe, seed)
    assert torch.equal(torch.get_rng_state(), state) and not model.training
    assert all(x.requires_grad and x.dtype == torch.float32 for x in model.parameters())
    made_by = RECIPES[recipe]
    assert card.command == f"python -m attncourse.training {recipe} --seed {seed} --save"
    assert card.settings == made_by.as_json() and card.model == model.spec()
    assert card.steps == made_by.steps == len(card.losses)
    assert card.versions.keys() == {"python", "torch", "attnlib"}
    assert len(card.date) == 10 and card.seconds > 0
    begun = trained(made_by, seed=seed, stop=8)  # the card has six digits of a loss
    assert [round(loss, 6) for loss in begun.losses] == pytest.approx(card.losses[:8], abs=2e-6)
    found = asdict(evaluate(model, held_out_sentences(made_by), made_by.task.relations))
    assert found["loss"] == pytest.approx(card.final["loss"], abs=1e-4)
    assert found["joint"] == pytest.approx(card.final["joint"], abs=1e-3)
    for name in ("readouts", "relations"):
        assert found[name] == pytest.approx(card.final[name], abs=1e-3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Let what is saved go to a folder of this test's."""
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    monkeypatch.setitem(RECIPES, "tiny", TINY)
    return tmp_path


def test_the_command_saves_and_compares_what_it_finds_again(folder, monkeypatch, capsys):
    assert main(["tiny", "--quiet", "--save"]) == 0
    assert f"saved: digest {tiny_training().digest}" in capsys.readouterr().out
    stem = folder / "tiny-seed0"
    assert {*folder.iterdir()} == {stem.with_suffix(e) for e in (".json", ".safetensors")}
    for arguments in ([], ["--stop", "20"]):
        assert main(["tiny", "--quiet", *arguments]) == 0
    assert "DIFFERS" not in capsys.readouterr().out
    (model, card), again = data.load("tiny"), tiny_training()
    assert card.losses == [round(loss, 6) for loss in again.losses]
    assert card.digest == again.digest == digest(model)
    assert list(card.evaluations) == ["25", "50", "60"]
    assert card.final["loss"] == round(again.final.loss, 6)
    for other in ("--seed", "--heads"):
        assert main(["tiny", "--quiet", other, "4", "--stop", "5"]) == 0
        out = capsys.readouterr().out
        assert all(part in out for part in ("nothing to compare", "5 steps", "digest ", "joint "))
    told = json.loads(stem.with_suffix(".json").read_text())
    told["losses"][3] += 1e-5
    told["evaluations"]["60"]["readouts"]["before"] -= 0.2
    told["digest"] = "0" * 64
    stem.with_suffix(".json").write_text(json.dumps(told))
    assert main(["tiny", "--quiet"]) == 1
    rows = capsys.readouterr().out.splitlines()
    (row,) = (row.split() for row in rows if row.startswith("readout before"))
    assert rows[0].split() == ["now", "saved"]
    assert float(row[2]) == pytest.approx(float(row[3]) + 0.2)
    differing = [row.split("  ")[0] for row in rows if "DIFFERS" in row]
    assert differing == ["loss of step 3, the furthest apart", "readout before", "digest"]
    with pytest.raises(SystemExit, match="2"):
        main(["no-such"])
    assert "'concord'" in capsys.readouterr().err

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("attncourse.training.__main__.train", interrupted)
    assert main(["tiny", "--quiet"]) == 130


def test_only_what_can_be_compared_is_saved_and_compared(folder, monkeypatch, capsys):
    quick = trained(SHORT.changed(repeatable=False))
    assert_named(ValueError, "trained must .* repeatable", lambda: save(quick))
    assert_named(ValueError, "trained must .* 60 steps", lambda: save(trained(TINY, stop=5)))
    assert list(folder.iterdir()) == []
    card = save(tiny_training())
    other = trained(TINY, seed=1, stop=3)
    assert_named(ValueError, "card must .* seed 1, got .* seed 0", lambda: compare(other, card))
    monkeypatch.setitem(RECIPES, "tiny", TINY.changed(lr=0.03))
    assert main(["tiny", "--quiet", "--stop", "3"]) == 2
    message = capsys.readouterr().err
    assert "lr=0.03" in message and "0.02" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--save --stop 5", ["60 steps", "got 5"]),
        ("--stop 61", ["stop", "60", "61"]),
        ("--seed -1", ["seed", "-1"]),
        ("--save --heads 1", ["--heads", "--save"]),
        ("--save", [VARIABLE]),  # in a changed world
    ],
)
def test_a_command_that_cannot_be_followed_is_refused(
    folder, monkeypatch, capsys, arguments, words
):
    if VARIABLE in words:
        monkeypatch.setenv(VARIABLE, "7")
    assert main(["tiny", "--quiet", *arguments.split()]) == 2
    told = capsys.readouterr().err
    assert all(word in told for word in words) and list(folder.iterdir()) == [], told


make = TINY.changed
make(pool=16, falls_at=0, ends_at=1, warmup=0)  # the limits themselves are taken
ask = partial(evaluate, untrained())
REFUSED = {
    TypeError: {
        trained: {
            "recipe": ["concord"], "seed": ["0"], "progress": ["no"], "watch": ["loss"],
            "evaluate_every": [2.5], "stop": [2.5],
        },
        partial(Recipe, "x", echo): {"model": [[1]]},
        partial(Recipe, "x"): {"task": ["concord"]},
        partial(Recipe, task=echo): {"name": [3]},
        make: {
            "steps": [1e3], "batch": ["4"], "repeatable": ["no"], "betas": [0.9, (0.9,)],
            "lr": ["1"], "falls_at": ["1"], "pool": [20.0], "warmup": [1.0],
        },
        ask: {"sentences": [3, ["a b"]]},
    },
    ValueError: {
        trained: {"seed": [-1, 2**31], "evaluate_every": [0], "stop": [0, 13]},
        make: {
            "steps": [0], "batch": [0], "held_out": [0], "falls_at": [70, -0.1],
            "ends_at": [-0.1, 1.1], "lr": [0], "warmup": [-1], "pool": [15, 0],
        },
        ask: {"sentences": [[]]},
    },
}  # fmt: skip

test_what_does_not_fit_is_refused = refusals(REFUSED)
