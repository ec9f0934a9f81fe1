"""Digests of models that the course has trained with torch, to compare a browser's with."""

from functools import cache

from attncourse import data
from attncourse.training import RECIPES

DIGITS = 8  # of a digest: enough to tell models apart


@cache
def known_digests(name: str) -> dict[str, str]:
    """Return the first digits of all models of a recipe that are kept, by heads and seed: "4 0".

    They are those of saved weights, and of sweeps in which one of the trials is the recipe itself.
    """
    settings = RECIPES[name].as_json()
    own = settings["model"].pop("num_heads")
    found = {
        f"{own} {seed}": data.read_card(name, seed).digest
        for recipe, seed in data.saved()
        if recipe == name
    }
    for path in sorted(data.SWEEPS.glob("*.json")):
        card = data.read_sweep(path.stem)
        for of in card.trainings:
            if card.settings[of["trial"]] == settings:
                found[f"{of['heads']} {of['seed']}"] = of["digest"]
    return {which: digest[:DIGITS] for which, digest in found.items()}
