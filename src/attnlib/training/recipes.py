"""The recipes of the course."""

from attnlib.relations import concord
from attnlib.training.recipe import Recipe

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("concord", concord, {"d_model": 64, "num_heads": 4}),
        Recipe("concord-long", concord, {"d_model": 64, "num_heads": 4}, batch=128, pool=20_000),
    )
}
