"""The models of names: what they begin with, what one has learned, what it makes up."""

import math
from functools import partial

import pytest
import torch
from tools.refusing import assert_named, refusals

from attncourse import data
from attncourse.tasks import names
from attncourse.training import RECIPES, held_out_sentences, sample_names, share_of_names, train
from attncourse.training.sampling import name_guesses
from attnlib.model import GPT

RECIPE = RECIPES["names"]


@pytest.fixture(scope="module")
def model():
    return data.load("names-gpt2")[0]


def test_the_sizes_are_those_of_microgpt():
    begun = train(RECIPE, progress=False, stop=1)
    (block,) = begun.model.blocks
    assert (block.attention.num_heads, block.feed_forward.d_ff) == (4, 64)
    count = sum(parameter.numel() for parameter in begun.model.parameters())
    assert count == 4_192 + 3 * 2 * 16  # microgpt's norms have neither gains nor biases
    assert begun.losses[0] == pytest.approx(math.log(27), abs=0.05)  # a guess


def test_what_was_learned_is_near_the_rules_and_no_list(model):
    card = data.read_card("names-gpt2")
    held_out = held_out_sentences(RECIPE)
    guesses = name_guesses(held_out, held_out)
    assert guesses["floor"] < card.final["loss"] < guesses["floor"] + 0.05
    assert card.final["loss"] < guesses["bigram"] - 0.5
    made = sample_names(model, 200, seed=1)
    kept = [name for name in made if names.keeps_rules(name)]
    assert share_of_names(model, 200, seed=1) == len(kept) / 200 > 0.9
    assert len({*kept} - {*names.texts(5_000, seed=0)}) > 20


def test_samples_have_a_seed_and_leave_random_numbers_alone(model):
    state = torch.get_rng_state()
    first, again, other = (sample_names(model, 9, seed=seed) for seed in (4, 4, 5))
    assert first == again != other and torch.equal(torch.get_rng_state(), state)
    assert first != sample_names(model, 9) == sample_names(model, 9, seed=0)
    assert len({*sample_names(model, 20, temperature=0), *sample_names(model, 20, top_k=1)}) == 1
    made = sample_names(GPT(27, 16, 16, 4), 100)  # untrained
    assert max(map(len, made)) == 16  # cut off, without an end


make_up = partial(sample_names, GPT(27, 16, 8, 2), number=1)
REFUSED = {
    TypeError: {partial(sample_names, number=1): {"model": [None]}},
    ValueError: {
        make_up: {"number": [-1], "seed": [-1], "temperature": [-1]},
        partial(share_of_names, GPT(27, 16, 8, 2)): {"number": [0]},
    },
}

test_what_does_not_fit_is_refused = refusals(REFUSED)


@pytest.mark.parametrize(("sizes", "named"), [((26, 16), "stop"), ((27, 15), "steps")])
def test_models_of_other_sizes_are_refused(sizes, named):
    assert_named(ValueError, named, lambda: sample_names(GPT(*sizes, 8, 2), 1))
