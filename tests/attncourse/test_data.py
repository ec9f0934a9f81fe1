"""Saved weights: they are those of their card, or it is said what is wrong with them."""

import json
import os
import shutil
import sys

import pytest
import torch
from tools.refusing import assert_refused

from attncourse import data
from attncourse.data import write_atomically
from attncourse.training import RECIPES

NAME, SEED = data.saved()[0]
WEIGHTS, CARD = (f"{NAME}-seed{SEED}.{ending}" for ending in ("safetensors", "json"))
LARGEST = 2_500_000  # bytes of all weights together


def test_all_files_are_weights_or_their_cards_and_small():
    stems = {f"{recipe}-seed{seed}" for recipe, seed in data.saved()}
    wanted = {f"{stem}.{ending}" for stem in stems for ending in ("json", "safetensors")}
    found = {path.name for path in data.FOLDER.iterdir() if path.is_file()}
    assert found == wanted | {"__init__.py"}
    assert sum(path.stat().st_size for path in data.FOLDER.glob("*.safetensors")) <= LARGEST


@pytest.mark.parametrize(("recipe", "seed"), data.saved())
def test_a_card_says_how_its_weights_were_made(recipe, seed):
    state = torch.get_rng_state()
    model, card = data.load(recipe, seed)
    assert torch.equal(torch.get_rng_state(), state) and not model.training
    assert all(x.requires_grad and x.dtype == torch.float32 for x in model.parameters())
    assert card.command == f"python -m attncourse.training {recipe} --seed {seed} --save"
    assert card.settings == RECIPES[recipe].as_json() and card.steps == RECIPES[recipe].steps
    assert card.model == model.spec()
    assert card.versions.keys() == {"python", "torch", "attnlib"}
    assert len(card.date) == 10 and card.seconds > 0
    task = RECIPES[recipe].task
    assert card.final["readouts"].keys() == task.readouts.keys()
    assert card.final["relations"].keys() <= {relation.name for relation in task.relations}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Let a copy of one model's files be what is saved."""
    for file in (WEIGHTS, CARD):
        shutil.copy(data.FOLDER / file, tmp_path)
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    return tmp_path


def flip(folder):
    stored = bytearray((folder / WEIGHTS).read_bytes())
    stored[-1] ^= 1
    (folder / WEIGHTS).write_bytes(stored)


def cut(folder):
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:1000])


def without(name):
    return lambda folder: (folder / name).unlink()


def tell(**changes):
    """Return a function that changes what a card says."""

    def change(folder):
        (folder / CARD).write_text(json.dumps(json.loads((folder / CARD).read_text()) | changes))

    return change


AGAIN = f"python -m attncourse.training {NAME} --seed {SEED} --save"
DAMAGES = {
    "one bit": (flip, ValueError, ["changed or damaged", AGAIN]),
    "the end is missing": (cut, ValueError, ["changed or damaged", AGAIN]),
    "no weights": (without(WEIGHTS), FileNotFoundError, ["missing", AGAIN]),
    "no card": (without(CARD), FileNotFoundError, [NAME, "none"]),
    "a card with another name": (tell(license="none"), ValueError, ["card", "license"]),
    "another model": (tell(model={"length": 3}), ValueError, ["card", "model", AGAIN]),
    "a model of other sizes": (tell(model={**data.read_card(NAME, SEED).model, "length": 99}),
        ValueError, ["card", "one model", AGAIN]),
    "another recipe": (tell(recipe="names"), ValueError, ["'names'", f"'{NAME}'", AGAIN]),
    "another digest": (tell(digest="0" * 64), ValueError, ["digest", "00000000...", AGAIN]),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damages_are_told(folder, damage):
    change, error, words = DAMAGES[damage]
    change(folder)
    assert_refused(lambda: data.load(NAME, SEED), words, error)


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    write_atomically(path, b"old")

    def is_full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", is_full)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_what_is_not_saved_is_refused_with_what_is():
    assert_refused(lambda: data.load(NAME, SEED + 99), [f"'{NAME}' with seed"], FileNotFoundError)
    for wrong in ({"recipe": 3}, {"recipe": NAME, "seed": "0"}, {"recipe": NAME, "seed": -1}):
        with pytest.raises((TypeError, ValueError), match=r"^(recipe|seed)"):
            data.load(**wrong)


def test_without_safetensors_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    assert_refused(lambda: data.load(NAME, SEED), ["safetensors", "pip install"], ImportError)
