"""The model of names: what it begins with, what it learns in some seconds, what it makes up."""

import math
from dataclasses import asdict

import pytest
import torch
from tools.refusing import assert_refused

from attncourse.tasks import names
from attncourse.training import (
    RECIPES,
    bigram_loss,
    evaluate,
    held_out_sentences,
    pair_counts,
    sample_names,
    share_of_names,
    train,
)
from attncourse.training.__main__ import main
from attnlib.model import GPT

RECIPE = RECIPES["names"]


@pytest.fixture(scope="module")
def trained():
    """All steps from seed 0: some seconds."""
    return train(RECIPE, progress=False)


def test_its_sizes_are_those_of_microgpt(trained):
    model = trained.model
    (block,) = model.blocks
    assert (model.vocabulary_size, model.length, model.d_model) == (27, 16, 16)
    assert (block.attention.num_heads, block.feed_forward.d_ff) == (4, 64)
    assert (RECIPE.steps, RECIPE.batch, RECIPE.pool) == (1000, 32, None)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == 4_192 + 3 * 2 * 16  # microgpt's norms have neither gains nor biases


def test_it_begins_as_a_guess_and_ends_near_the_rules(trained):
    assert trained.losses[0] == pytest.approx(math.log(27), abs=0.05)
    texts = [names.spelled(one.ids) for one in held_out_sentences(RECIPE)]
    tokens = sum(len(text) + 1 for text in texts)
    floor = -sum(map(names.log_probability, texts)) / tokens
    counts = pair_counts([[*names.read(text).ids, 26] for text in texts], 27)
    assert floor < trained.final.loss < floor + 0.05
    assert trained.final.loss < bigram_loss(counts) - 0.5
    assert trained.final.relations["ending>first"] > 0.95


def test_most_of_its_names_keep_all_rules(trained):
    assert share_of_names(trained.model) > 0.9
    made = sample_names(trained.model, 200, seed=1)
    assert len(made) == 200 and len(set(made)) > 150
    kept = [name for name in made if names.keeps_rules(name)]
    assert len({*kept} - {*names.texts(5_000, seed=0)}) > 20  # not a list that was learned by heart


def test_samples_have_a_seed_and_leave_random_numbers_alone(trained):
    state = torch.get_rng_state()
    first, again, other = (sample_names(trained.model, 9, seed=seed) for seed in (4, 4, 5))
    assert first == again != other and torch.equal(torch.get_rng_state(), state)
    assert share_of_names(trained.model, 50, seed=4) == share_of_names(trained.model, 50, seed=4)
    assert len({*sample_names(trained.model, 20, temperature=0)}) == 1
    assert sample_names(trained.model, 0) == []


def test_an_untrained_model_makes_up_nothing_right():
    model = GPT(27, 16, 16, 4)
    made = sample_names(model, 100)
    assert max(map(len, made)) == 16 and share_of_names(model, 100) == 0  # cut off, without an end


def test_an_evaluation_is_the_mean_over_letters_and_boundaries(trained):
    sentences = held_out_sentences(RECIPE)[:7]
    total, number = 0.0, 0
    for sentence in sentences:
        logits = trained.model(torch.tensor([sentence.ids])).logits["next"][0]
        told = torch.tensor(sentence.answers["next"])
        total -= logits.log_softmax(-1)[range(len(told)), told].sum().item()
        number += len(told)
    assert evaluate(trained.model, sentences).loss == pytest.approx(total / number, abs=1e-5)


def test_the_command_prints_losses_beside_worse_and_better_guesses(trained, capsys):
    assert main(["names", "--quiet", "--stop", "30"]) == 0
    rows = dict(row.rsplit(maxsplit=1) for row in capsys.readouterr().out.splitlines()[:-1])
    found = {" ".join(name.split()): value for name, value in rows.items()}
    uniform, unigram, bigram, floor = (
        float(found[f"loss of {guess}"])
        for guess in (
            "uniform", "unigram of 20000 names", "bigram of 20000 names", "who knows the rules"
        )
    )  # fmt: skip
    assert uniform == 3.2958 and uniform > unigram > bigram > floor > 1.5
    assert floor < float(found["loss"]) < uniform
    assert 0 <= float(found["names that keep all rules"]) < 0.2


def test_what_it_gets_right_can_be_told_as_json(trained):
    assert asdict(trained.final)["readouts"].keys() == {"next"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sample_names(GPT(27, 16, 8, 2), -1), ["number", "-1"]),
        (lambda: sample_names(GPT(27, 16, 8, 2), 1, seed=-1), ["seed", "-1"]),
        (lambda: sample_names(GPT(27, 16, 8, 2), 1, temperature=-1), ["temperature", "-1"]),
        (lambda: sample_names(GPT(26, 16, 8, 2), 1), ["stop", "0 to 25", "26"]),
        (lambda: sample_names(GPT(27, 15, 8, 2), 1), ["steps", "15"]),
        (lambda: sample_names(None, 1), ["model", "NoneType"]),
        (lambda: share_of_names(GPT(27, 16, 8, 2), 0), ["number", "0"]),
    ],
)
def test_bad_input(call, words):
    assert_refused(call, words)
