"""Sweeps: what is saved was found by the trainings that it names, and can be found again."""

import json
import shutil

import pytest
import torch
from tools.refusing import assert_refused

from attncourse import data
from attncourse.tasks import lookup, pack
from attncourse.training import RECIPES, SWEEPS, FixedWeights, Sweep, held_out_sentences
from attncourse.training.__main__ import main
from attncourse.training.recipes import LOOKUP
from attncourse.training.sweeps import EARLY, differences, head_masses, run, settings_of
from attnlib.patterns import relation_mass

TINY = Sweep(
    "tiny",
    {
        "few": LOOKUP.changed(task=lookup(3, 4), batch=8, steps=12, held_out=20),
        "many": LOOKUP.changed(task=lookup(4, 4), batch=8, steps=12, held_out=20),
    },
    heads=(1, 2),
    make=FixedWeights,
    seeds=3,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Let an empty folder be where sweeps are kept, and a small sweep one of them."""
    monkeypatch.setattr(data, "SWEEPS", tmp_path)
    monkeypatch.setitem(SWEEPS, "tiny", TINY)
    return tmp_path


# --- what is saved -------------------------------------------------------------------------------


def test_all_sweeps_are_saved_and_nothing_else():
    assert {path.name for path in data.SWEEPS.iterdir()} == {f"{name}.json" for name in SWEEPS}


@pytest.mark.parametrize("name", SWEEPS)
def test_what_is_saved_was_found_by_this_sweep(name):
    sweep, card = SWEEPS[name], data.load_sweep(name)
    assert card.sweep == sweep.name == name
    assert card.command == f"python -m attncourse.training {name} --save"
    assert card.settings == settings_of(sweep) and card.heads == list(sweep.heads)
    assert card.seeds == list(range(sweep.seeds)) and sweep.seeds >= 3
    assert card.versions.keys() == {"python", "torch", "attnlib"} and len(card.date) == 10
    of = [(one["trial"], one["heads"], one["seed"]) for one in card.trainings]
    assert of == list(sweep.all())
    assert len({one["digest"] for one in card.trainings}) == len(of)  # no two models are the same
    for one in card.trainings:
        of_task = [relation.name for relation in sweep.trials[one["trial"]].task.relations]
        assert len(one["losses"]) == EARLY and one["seconds"] > 0
        assert list(one["relations"]) == of_task
        assert one.keys() >= sweep.keep.keys()
        if sweep.watch is not None:
            curves = [one["watched"], *one["right"].values()]
            assert {len(curve) for curve in curves} == {len(one["steps"])} and len(one["steps"]) > 3


@pytest.mark.parametrize("name", SWEEPS)
def test_its_first_steps_come_out_again(name):
    assert differences(SWEEPS[name], data.load_sweep(name)) == []


# --- a sweep of one's own ------------------------------------------------------------------------


def test_a_sweep_is_trained_and_found_again(folder, capsys):
    assert main(["tiny", "--save"]) == 0
    card = data.load_sweep("tiny")
    assert card.right("few").shape == (2, 3) and (card.right("many") <= 1).all()
    assert card.settings["few"]["model"] == {"d_model": 32}
    assert card.settings["many"]["task"] == "lookup-4-4"
    assert main(["tiny"]) == 0
    assert f"The first {EARLY} losses" in capsys.readouterr().out


def test_each_training_stands_where_its_heads_and_seed_are(folder):
    card = run(TINY)
    for trial in TINY.trials:
        for row, h in enumerate(TINY.heads):
            one = TINY.train(trial, h, 1)
            assert one.recipe.task is TINY.trials[trial].task
            assert card.values("digest", trial)[row][1] == one.digest
            assert card.right(trial)[row, 1].item() == pytest.approx(one.final.joint, abs=1e-6)


def test_a_sweep_that_was_stopped_goes_on_where_it_was(folder, monkeypatch):
    whole = run(TINY)
    path = folder / "tiny.json"
    told = json.loads(path.read_text())
    told["trainings"] = told["trainings"][:5] + told["trainings"][6:9]
    path.write_text(json.dumps(told))
    assert_refused(lambda: data.load_sweep("tiny"), ["12 trainings", "got 8", whole.command])
    trained = []
    train = Sweep.train

    def noted(sweep, *which, **options):
        trained.append(which)
        return train(sweep, *which, **options)

    monkeypatch.setattr(Sweep, "train", noted)
    again = run(TINY)
    every = list(TINY.all())
    assert trained == [every[5], *every[9:]]

    def lasting(card):
        return [{**one, "seconds": 0} for one in card.trainings]

    assert lasting(again) == lasting(whole) == lasting(data.load_sweep("tiny"))


def test_a_changed_sweep_begins_anew(folder, monkeypatch):
    run(TINY)
    few = {"few": TINY.trials["few"].changed(lr=0.02)}
    monkeypatch.setitem(SWEEPS, "tiny", Sweep("tiny", few, (1,), 2, FixedWeights))
    card = run(SWEEPS["tiny"])
    assert [one["trial"] for one in card.trainings] == ["few", "few"]
    assert card.settings["few"]["lr"] == 0.02 and card.heads == [1] and card.seeds == [0, 1]


def test_what_each_head_finds_is_kept_where_a_sweep_asks_for_it(folder):
    recipe = RECIPES["concord"].changed(batch=8, steps=40, warmup=5, held_out=30)
    sweep = Sweep("tiny", {"one": recipe}, heads=(1, 2, 4), seeds=2, keep={"masses": head_masses})
    card = run(sweep)
    batch = pack(held_out_sentences(recipe))
    for row, h in enumerate(sweep.heads):
        one = sweep.train("one", h, 1)
        weights = one.model(batch.tokens, key_mask=batch.key_mask, need_weights=True).weights[0]
        for name, partners in batch.partners.items():
            masses = relation_mass(weights.detach(), partners).heads.tolist()
            assert card.values("masses", "one")[row][1][name] == pytest.approx(masses, abs=1e-6)
            share = one.final.relations[name]
            found = card.values("relations", "one")[row][1][name]
            assert found == pytest.approx(share, abs=1e-6)


def test_what_is_watched_is_kept_for_each_evaluation(folder):
    recipe = TINY.trials["few"]

    def watch(model, batch):
        assert len(batch.tokens) == recipe.held_out
        return [model.keys.weight.norm().item(), 0.5]

    sweep = Sweep("tiny", {"few": recipe}, (2,), 2, FixedWeights, watch=watch, every=5)
    one = run(sweep).trainings[1]
    assert one["steps"] == [5, 10, 12]
    assert {name: curve[-1] for name, curve in one["right"].items()} == one["relations"]
    norms, constant = zip(*one["watched"], strict=True)
    assert len({*norms}) == 3 and {*constant} == {0.5}


def test_other_losses_and_settings_are_noticed(folder, monkeypatch, capsys):
    main(["tiny", "--save"])
    path = folder / "tiny.json"
    told = json.loads(path.read_text())
    many = [one for one in told["trainings"] if one["trial"] == "many" and one["seed"] == 0]
    many[-1]["losses"][4] += 0.001
    path.write_text(json.dumps(told))
    assert main(["tiny"]) == 1
    assert "many, 2 heads: losses" in capsys.readouterr().out
    changed = {name: recipe.changed(lr=0.1) for name, recipe in TINY.trials.items()}
    monkeypatch.setitem(SWEEPS, "tiny", Sweep("tiny", changed, (1, 2), 3, FixedWeights))
    assert main(["tiny"]) == 1
    assert "isn't the one that was saved" in capsys.readouterr().out


# --- bad input -----------------------------------------------------------------------------------


def test_a_sweep_that_is_not_saved_is_refused_with_those_that_are(folder, capsys):
    shutil.copy(data.FOLDER / "sweeps" / "keys.json", folder)
    assert_refused(lambda: data.load_sweep("no-such"), ["no-such", "'keys'"], FileNotFoundError)
    assert_refused(lambda: data.load_sweep(3), ["name", "int"])
    assert main(["tiny"]) == 2 and "'tiny'" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["[]", "3", '{"sweep": "keys"}', "{", '{"license": "none"}'])
def test_a_damaged_file_is_told(folder, damage):
    (folder / "keys.json").write_text(damage)
    with pytest.raises(ValueError, match=r"keys\.json was changed or damaged"):
        data.load_sweep("keys")


def test_an_unknown_trial_is_refused_with_those_that_there_are():
    card = data.load_sweep("staircase")
    assert_refused(lambda: card.right("5 places"), ["trial", "'2 places'", "'5 places'"])


@pytest.mark.parametrize("option", [["--seed", "1"], ["--stop", "0"], ["--heads", "0"]])
def test_options_of_a_recipe_are_refused(folder, capsys, option):
    assert main(["tiny", *option]) == 2
    assert "a sweep has seeds" in capsys.readouterr().err


# --- fixed weights -------------------------------------------------------------------------------


def test_weights_depend_on_letters_and_question_and_never_on_values():
    torch.manual_seed(0)
    task = lookup(slots=4, values=5)
    model = FixedWeights(task, d_model=6, num_heads=3)
    tokens = pack(task.sentences(7, seed=1)).tokens
    others = tokens.clone()
    others[:, :-1] = tokens[:, :-1] // 5 * 5 + (tokens[:, :-1] + 2) % 5  # same keys, other values
    with torch.no_grad():
        one, another = (model(ids, need_weights=True) for ids in (tokens, others))
    assert one.weights[0].shape == (7, 3, 1, 4)
    assert torch.equal(one.weights[0], another.weights[0])
    assert not torch.allclose(one.logits["first"], another.logits["first"])
    asked = tokens.roll(1, 0)[:, -1:]
    with torch.no_grad():
        moved = model(torch.cat([tokens[:, :-1], asked], 1), need_weights=True)
    assert not torch.allclose(one.weights[0], moved.weights[0])


def test_one_head_with_fixed_weights_puts_all_contents_on_a_line():
    torch.manual_seed(0)
    task = lookup(slots=3, values=4)
    words = [f"a{a} b0 c{c} ac?".split() for a in (1, 2) for c in (1, 2)]
    ids = torch.tensor([[task.vocabulary.index(word) for word in of] for of in words])

    def points(h):
        with torch.no_grad():
            answered = FixedWeights(task, 8, h)(ids).logits
        return torch.cat([answered["first"], answered["second"]], -1)[:, -1]

    ranks = [torch.linalg.matrix_rank(p - p.mean(0), rtol=1e-3) for p in map(points, (1, 2))]
    assert ranks == [1, 2]


def test_a_muted_head_says_nothing():
    torch.manual_seed(0)
    model = FixedWeights(lookup(3, 4), 8, 2)
    tokens = pack(model.task.sentences(5, seed=0)).tokens
    silent = model(tokens, head_masks=[torch.zeros(2)]).logits
    assert all(not logits.any() for logits in silent.values())


def test_only_the_question_says_something():
    model = FixedWeights(lookup(3, 4), 8, 2)
    logits = model(pack(model.task.sentences(5, seed=0)).tokens).logits
    assert all(of.shape == (5, 4, 4) and not of[:, :-1].any() for of in logits.values())
