"""Sweeps: what is saved was found by the trainings that it names, and can be found again."""

import copy
import dataclasses
import json
from functools import cache
from itertools import product

import pytest
import torch
from tools.refusing import assert_refused

from attncourse import data
from attncourse.interventions import (
    attention_knockout,
    follower_looks,
    mean_ablation,
    right_answers,
)
from attncourse.tasks import lookup, pack
from attncourse.training import (
    RECIPES,
    SWEEPS,
    FixedWeights,
    Sweep,
    evaluate,
    held_out_sentences,
    train,
)
from attncourse.training.__main__ import main
from attncourse.training.recipes import LOOKUP
from attncourse.training.sweeps import (
    EARLY,
    differences,
    head_masses,
    induction_looks,
    right_with_heads_left,
    right_without_as_much,
    right_without_looks,
    run,
    settings_of,
)
from attnlib.patterns import induction_score, relation_mass


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


@pytest.fixture(scope="module")
def short():
    """Return a short training whose heads differ, of a causal task with two layers."""
    recipe = RECIPES["induction-short"].changed(steps=25, held_out=30)
    return train(recipe, progress=False)


def test_what_is_kept_of_heads_is_what_they_put_on_partners_and_followers(short):
    batch = pack(held_out_sentences(short.recipe))
    with torch.no_grad():
        weights = short.model(batch.tokens, need_weights=True).weights
    mass = relation_mass(weights[-1], batch.partners["induction"]).heads.tolist()
    assert head_masses(short)["induction"] == pytest.approx(mass, abs=1e-6)
    places = [induction_score(weights[-1], batch.tokens, after=after).heads for after in (1, 2)]
    assert induction_looks(short.model, batch) == [heads.max().item() for heads in places]
    right = []
    for after in (1, 2):
        with attention_knockout(short.model, follower_looks(batch.tokens, after)):
            right += right_answers(short.model, batch, short.recipe.task.relations).values()
    assert right_without_looks(short) == pytest.approx(right, abs=1e-6)


def test_as_much_is_forbidden_at_the_heaviest_places_that_are_neither_look(short):
    sharp = dataclasses.replace(short, model=copy.deepcopy(short.model))
    sharp.model.blocks[-1].attention.W_q.weight.data *= 40  # so that some looks outweigh the rest
    batch, relations = pack(held_out_sentences(short.recipe)), short.recipe.task.relations
    with torch.no_grad():
        answers = sharp.model(batch.tokens, need_weights=True)
    weights, tokens = answers.weights[-1].mean(1).tolist(), batch.tokens.tolist()
    found = []
    for after in (1, 2):
        look, others = torch.zeros(2, len(tokens), 24, 24).bool()
        counted = torch.zeros(len(tokens), 24).bool()
        for b, word in enumerate(tokens):
            for i, row in enumerate(weights[b]):
                looks = {n: [j for j in range(n, i + 1) if word[j - n] == word[i]] for n in (1, 2)}
                mass, left = sum(row[j] for j in looks[after]), 0.0
                look[b, i, looks[after]] = True
                neither = {*range(i + 1)} - {*looks[1], *looks[2]}
                for j in sorted(neither, key=lambda j: -row[j]):
                    if left < mass:
                        others[b, i, j] = True
                        left += row[j]
                counted[b, i] = left >= mass and batch.partners["induction"][b, i] >= 0
        assert 0 < counted.sum() < (batch.partners["induction"] >= 0).sum()
        shares = []
        for forbidden in (torch.zeros_like(look), look, others):
            with attention_knockout(sharp.model, forbidden), torch.no_grad():
                logits = sharp.model(batch.tokens).logits[relations[0].readout]
            right = logits.argmax(-1) == batch.answers[relations[0].readout]
            shares.append(right[counted].float().mean().item())
        found.append(shares)
    for now, wanted in zip(right_without_as_much(sharp), found, strict=True):
        assert now == pytest.approx(wanted, abs=1e-6)


def test_heads_go_in_the_order_in_which_they_are_missed_least():
    recipe = RECIPES["concord"].changed(batch=8, steps=40, warmup=5, held_out=350)
    trained = train(recipe, progress=False)
    some = held_out_sentences(recipe)[:300]
    relations = [one for one in recipe.task.relations if one.name != "predicate>noun"]

    def right_without(gone):
        mask = torch.tensor([0.0 if k in gone else 1.0 for k in range(4)])
        found = evaluate(trained.model, some, relations, head_masks=[mask]).relations
        return sum(found.values()) / len(found)

    gone, path = set(), [right_without(set())]
    while len(gone) < 4:
        path.append(max(right_without({*gone, k}) for k in {*range(4)} - gone))
        gone.add(next(k for k in range(4) if right_without({*gone, k}) == path[-1]))
    muted, averaged = (SWEEPS["pruned"].keep[way](trained) for way in ("muted", "averaged"))
    assert muted == pytest.approx(path, abs=1e-6)
    assert averaged == right_with_heads_left(trained, mean_ablation) != muted


# --- refusals


def test_what_is_not_saved_or_damaged_is_refused(path, capsys):
    path.unlink()
    assert main(["tiny"]) == 2 and "'tiny'" in capsys.readouterr().err
    for damage in ("[]", '{"sweep": "keys"}', "{"):
        (path.parent / "keys.json").write_text(damage)
        assert_refused(lambda: data.load_sweep("keys"), ["keys.json", "damaged"], ValueError)
    assert_refused(lambda: data.load_sweep("no-such"), ["no-such", "'keys'"], FileNotFoundError)
    for option in (["--seed", "1"], ["--stop", "0"], ["--heads", "0"]):
        assert main(["tiny", *option]) == 2
        assert option[0] in capsys.readouterr().err


def test_a_trial_that_is_none_is_refused():
    card = data.load_sweep("staircase")
    assert_refused(lambda: card.right("5 places"), ["trial", "'2 places'", "'5 places'"])


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


def test_queries_and_values_may_differ_in_width_and_nothing_else_changes():
    task = lookup(slots=4, values=5)
    tokens, mask = pack(task.sentences(7, seed=1)).tokens, torch.tensor([1.0, 0.0, 0.5])
    usual, apart = FixedWeights(task, 6, 3), FixedWeights(task, 6, 3, d_k=2)
    apart.load_state_dict(usual.state_dict())
    with torch.no_grad():
        one, other = (model(tokens, head_masks=[mask]).logits for model in (usual, apart))
    torch.testing.assert_close(other, one)
    apart = FixedWeights(task, 6, 3, d_v=5).attention
    widths = [one.weight.shape[0] for one in (apart.W_q, apart.W_k, apart.W_v)]
    assert widths == [6, 6, 15] and apart.W_o.weight.shape == (6, 15)


def test_one_head_with_fixed_weights_puts_all_contents_on_a_line():
    task = lookup(slots=3, values=4)
    words = [f"a{a} b0 c{c} ac?".split() for a in (1, 2) for c in (1, 2)]
    ids = torch.tensor([[task.vocabulary.index(word) for word in of] for of in words])

    def rank(h):
        with torch.no_grad():
            answered = FixedWeights(task, 8, h)(ids).logits
        points = torch.cat([answered["first"], answered["second"]], -1)[:, -1]
        return torch.linalg.matrix_rank(points - points.mean(0), rtol=1e-3)

    assert [rank(1), rank(2)] == [1, 2]
