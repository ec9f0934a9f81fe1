"""Saved weights: they are those of their card, or it is said what is wrong with them."""

import json
import os
import shutil
import sys

import pytest
from tools.refusing import assert_refused

from attncourse import data
from attncourse.data import write_atomically

NAME, SEED = data.saved()[0]
WEIGHTS, CARD = (f"{NAME}-seed{SEED}.{ending}" for ending in ("safetensors", "json"))
LARGEST = 2_500_000  # bytes of all weights together


def test_all_files_are_weights_or_their_cards_and_small():
    stems = {f"{recipe}-seed{seed}" for recipe, seed in data.saved()}
    wanted = {f"{stem}.{ending}" for stem in stems for ending in ("json", "safetensors")}
    found = {path.name for path in data.FOLDER.iterdir() if path.is_file()}
    assert found == wanted | {"__init__.py"}
    assert sum(path.stat().st_size for path in data.FOLDER.glob("*.safetensors")) <= LARGEST


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Let a copy of one model's files be what is saved."""
    for file in (WEIGHTS, CARD):
        shutil.copy(data.FOLDER / file, tmp_path)
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    return tmp_path


def with_weights(change):
    """Return a function that changes the bytes of the weights."""
    return lambda folder: (folder / WEIGHTS).write_bytes(change((folder / WEIGHTS).read_bytes()))


def without(name):
    return lambda folder: (folder / name).unlink()


def tell(**changes):
    """Return a function that changes what a card says."""

    def change(folder):
        (folder / CARD).write_text(json.dumps(json.loads((folder / CARD).read_text()) | changes))

    return change


AGAIN = f"python -m attncourse.training {NAME} --seed {SEED} --save"
DAMAGES = {
    "one bit": (with_weights(lambda stored: stored[:-1] + bytes([stored[-1] ^ 1])),
        ValueError, ["digest", "changed or damaged", AGAIN]),
    "the end is missing": (with_weights(lambda stored: stored[:1000]),
        ValueError, ["changed or damaged", AGAIN]),
    "no weights": (without(WEIGHTS), FileNotFoundError, ["missing", AGAIN]),
    "no card": (without(CARD), FileNotFoundError, [NAME, "none"]),
    "a card with another name": (tell(license="none"), ValueError, ["card", "license"]),
    "another model": (tell(model={"length": 3}), ValueError, ["card", "model", AGAIN]),
    "another recipe": (tell(recipe="names"), ValueError, ["'names'", f"'{NAME}'", AGAIN]),
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
