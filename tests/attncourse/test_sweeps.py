"""Sweeps: what is saved was found by the trainings that it names, and can be found again."""

import dataclasses
import json
from functools import cache, partial
from itertools import product

import pytest
import torch
from tools.refusing import assert_refused

from attncourse import data
from attncourse.tasks import lookup, pack
from attncourse.training import RECIPES, SWEEPS, FixedWeights, Sweep, held_out_sentences, train
from attncourse.training.__main__ import main
from attncourse.training.recipes import LOOKUP
from attncourse.training.sweeps import EARLY, differences, run, settings_of


def watch(model, batch):
    assert len(batch.tokens) == 20 and not torch.is_grad_enabled()
    return [model.keys.weight.norm().item(), 0.5]


TINY = Sweep(
    "tiny",
    {
        name: LOOKUP.changed(task=lookup(slots, 4), batch=8, steps=12, held_out=20)
        for name, slots in (("few", 3), ("many", 4))
    },
    heads=(1, 2),
    make=FixedWeights,
    seeds=3,
    keep={"rows": lambda trained: trained.model.keys.weight.shape[0]},
    watch=watch,
    every=5,
)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return the file of a small sweep, which has run, in the folder of sweeps."""
    monkeypatch.setattr(data, "SWEEPS", tmp_path)
    monkeypatch.setitem(SWEEPS, "tiny", TINY)
    path = tmp_path / "tiny.json"
    path.write_text(once())
    return path


@cache
def once():
    """Run the small sweep by its command, into the folder of the test that comes first."""
    assert main(["tiny", "--save"]) == 0
    return (data.SWEEPS / "tiny.json").read_text()


def assert_same(*sweeps):
    """Fail unless the trainings of two sweeps are the same but for the time that they took."""
    one, other = ([{**training, "seconds": 0} for training in sweep] for sweep in sweeps)
    assert one == other


def test_all_sweeps_are_saved_and_nothing_else():
    assert {path.name for path in data.SWEEPS.iterdir()} == {f"{name}.json" for name in SWEEPS}


@pytest.mark.parametrize("name", SWEEPS)
def test_what_is_saved_was_found_by_this_sweep_and_begins_so_again(name):
    sweep, card = SWEEPS[name], data.load_sweep(name)
    assert card.sweep == sweep.name == name
    assert card.command == f"python -m attncourse.training {name} --save"
    assert card.settings == settings_of(sweep) and card.heads == list(sweep.heads)
    assert card.seeds == list(range(sweep.seeds)) and sweep.seeds >= 12
    of = [(one["trial"], one["heads"], one["seed"]) for one in card.trainings]
    assert of == list(sweep.all()) == list(product(sweep.trials, sweep.heads, card.seeds))
    assert len({one["digest"] for one in card.trainings}) == len(of)  # no two models are the same
    for one in card.trainings:
        of_task = [relation.name for relation in sweep.trials[one["trial"]].task.relations]
        assert list(one["relations"]) == of_task and one.keys() >= sweep.keep.keys()
        if sweep.watch is not None:
            curves = [one["watched"], *one["right"].values()]
            assert {len(curve) for curve in curves} == {len(one["steps"])} and len(one["steps"]) > 3
    assert differences(sweep, card) == []


def test_each_training_stands_where_its_heads_and_seed_are(path):
    card = data.load_sweep("tiny")
    assert card.right("few").shape == (2, 3)
    assert card.settings["few"]["model"] == {"d_model": 32}
    assert card.settings["many"]["task"] == "lookup-4-4"
    assert (card.heads, card.seeds) == ([1, 2], [0, 1, 2])
    for trial, (row, h) in product(TINY.trials, enumerate(TINY.heads)):
        one = train(
            TINY.trials[trial].changed(model={"num_heads": h}), seed=1, progress=False,
            make=FixedWeights, evaluate_every=5,
        )  # fmt: skip
        found = {what: card.values(what, trial)[row][1] for what in card.trainings[0]}
        assert found["digest"] == one.digest and found["rows"] == {"few": 3, "many": 4}[trial]
        assert found["losses"] == [round(loss, 6) for loss in one.losses[:EARLY]]
        assert card.right(trial)[row, 1].item() == pytest.approx(one.final.joint, abs=1e-6)
        assert found["relations"] == pytest.approx(one.final.relations, abs=1e-6)
        assert found["steps"] == [5, 10, 12]
        for name, curve in found["right"].items():
            at_each = [of.relations[name] for of in one.evaluations.values()]
            assert curve == pytest.approx(at_each, abs=1e-6)
        norms, constant = zip(*found["watched"], strict=True)
        assert len({*norms}) == 3 and {*constant} == {0.5}
        assert norms[-1] == pytest.approx(one.model.keys.weight.norm().item(), abs=1e-5)


def test_a_sweep_that_was_stopped_goes_on_where_it_was(path, monkeypatch):
    whole, told = data.load_sweep("tiny"), json.loads(path.read_text())
    del told["trainings"][9:], told["trainings"][5]
    del told["trainings"][2]["rows"]  # it was kept by an earlier version
    path.write_text(json.dumps(told))
    assert_refused(lambda: data.load_sweep("tiny"), ["12 trainings", "got 8", whole.command])
    trained = []
    train_one = Sweep.train

    def noted(sweep, *which, **options):
        trained.append(which)
        return train_one(sweep, *which, **options)

    monkeypatch.setattr(Sweep, "train", noted)
    assert_same(run(TINY).trainings, whole.trainings)
    every = list(TINY.all())
    assert trained == [every[2], every[5], *every[9:]]
    assert_same(data.load_sweep("tiny").trainings, whole.trainings)


def test_a_changed_sweep_begins_anew(path):
    few = {"few": TINY.trials["few"].changed(lr=0.02)}
    card = run(Sweep("tiny", few, (1,), 2, FixedWeights))
    assert card.settings["few"]["lr"] == 0.02 and card.heads == [1] and len(card.trainings) == 2
    assert "watched" not in card.trainings[0]


def test_other_losses_and_settings_are_noticed(path, monkeypatch, capsys):
    assert main(["tiny"]) == 0
    assert f"first {EARLY} losses" in capsys.readouterr().out
    told = json.loads(path.read_text())
    told["trainings"][-3]["losses"][4] += 1e-5
    path.write_text(json.dumps(told))
    for heads, word in (((1, 2), "many, 2 heads"), ((1, 2, 4), "isn't the one")):
        monkeypatch.setitem(SWEEPS, "tiny", dataclasses.replace(TINY, heads=heads))
        assert main(["tiny"]) == 1
        assert word in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "trial", "recipe"),
    [
        ("sides", "both readouts", "concord"),
        ("pruned", "400 steps", "concord"),
        ("step", "12 symbols", "induction-short"),
    ],
)
def test_what_a_sweep_kept_of_a_saved_model_is_found_in_it_again(name, trial, recipe):
    sweep, saved, (model, card) = SWEEPS[name], data.load_sweep(name), data.load(recipe)

    def kept(what):
        return saved.values(what, trial)[sweep.heads.index(4)][0]

    assert kept("digest") == card.digest
    trained = dataclasses.replace(train(RECIPES[recipe], progress=False, stop=1), model=model)
    found = {what: keep(trained) for what, keep in sweep.keep.items()}
    same = partial(torch.testing.assert_close, atol=2e-3, rtol=0)  # an answer of a thousand may tip
    same(found, {what: kept(what) for what in sweep.keep})
    if sweep.watch is not None:
        same(sweep.watch(model, pack(held_out_sentences(trained.recipe))), kept("watched")[-1])


def test_what_is_not_saved_or_damaged_is_refused(path, capsys):
    card = data.load_sweep("tiny")
    assert_refused(lambda: card.right("5 places"), ["trial", "'few'", "'5 places'"])
    path.unlink()
    assert main(["tiny"]) == 2 and "'tiny'" in capsys.readouterr().err
    for damage in ("[]", '{"sweep": "keys"}', "{"):
        (path.parent / "keys.json").write_text(damage)
        assert_refused(lambda: data.load_sweep("keys"), ["keys.json", "damaged"], ValueError)
    assert_refused(lambda: data.load_sweep("no-such"), ["no-such", "'keys'"], FileNotFoundError)
    for option in (["--seed", "1"], ["--stop", "0"], ["--heads", "0"]):
        assert main(["tiny", *option]) == 2
        assert option[0] in capsys.readouterr().err


def test_weights_depend_on_letters_and_question_and_never_on_values():
    task = lookup(slots=4, values=5)
    model = FixedWeights(task, d_model=6, num_heads=3, d_v=4)
    tokens = pack(task.sentences(7, seed=1)).tokens
    others = tokens.clone()
    others[:, :-1] = tokens[:, :-1] // 5 * 5 + (tokens[:, :-1] + 2) % 5  # same keys, other values
    moved = torch.cat([tokens[:, :-1], tokens.roll(1, 0)[:, -1:]], 1)  # another question
    with torch.no_grad():
        one, other, asked = (model(ids, need_weights=True) for ids in (tokens, others, moved))
        silent = model(tokens, head_masks=[torch.zeros(3)])
    assert one.weights[0].shape == (7, 3, 1, 4)
    assert torch.equal(one.weights[0], other.weights[0])
    assert not torch.allclose(one.weights[0], asked.weights[0])
    for name, logits in one.logits.items():
        assert logits.shape == (7, 5, 5) and not logits[:, :-1].any() and logits[:, -1].all()
        assert not torch.allclose(logits, other.logits[name])
        assert not silent.logits[name].any()
    assert silent.weights is None
