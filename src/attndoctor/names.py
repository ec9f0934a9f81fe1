"""The names that public code gives to the arguments, sizes and layers of attention."""

import inspect
import re
from collections.abc import Callable

from attndoctor.support.texts import read_labels

_NAMES = {
    table: {key: tuple(names.split()) for key, names in entries}
    for table, entries in read_labels(__file__).items()
}
ROLES, SIZES, PROJECTIONS = (_NAMES[table] for table in ("arguments", "sizes", "projections"))
# Words that leave open which projection it is, that make it a bias, and that say nothing.
_PLAIN, _BIAS, _BESIDE = _NAMES["words in the name of a layer"].values()
OF_EITHER_KIND = ("encoder_hidden_states", "key_value_states")  # in transformers
SCALES = ("scaling", "scale", "softmax_scale", "sm_scale", "norm_factor")  # attributes
CAUSAL_FLAGS = ("causal", "is_causal", "masked", "mask_flag", "is_decoder")  # attributes
PLAIN = "plain"  # the role of a layer whose name leaves its projection open
_SEVERAL = (["k", "q", "v"], ["k", "v"], ["k", "q"])  # letters of projections in one parameter
_OF_ONE = {"W_q": "q", "W_k": "k", "W_v": "v"}


def projection_named(name: str) -> str | None:
    """Return the projection that a layer is named for: `PLAIN` of "proj", "kv" of two in one."""
    words = words_of(name)
    return _named([word for word in words if word not in (*_PLAIN, *_BESIDE)], words)


def bias_named(name: str) -> str | None:
    """Return the projection whose bias a parameter is named for, or None."""
    words = words_of(name)
    if len(words) == 1:  # bq
        words = ["b", words[0].removeprefix("b")] if words[0].startswith("b") else words
    rest = [word for word in words if word not in (*_BIAS, *_PLAIN, *_BESIDE)]
    return _named(rest, []) if set(words) & set(_BIAS) else None


def _named(words: list[str], all_words: list[str]) -> str | None:
    found = list(dict.fromkeys(_projection(word) for word in words))
    letters = "".join(_OF_ONE.get(role or "", " ") for role in found)
    if sorted(letters) in _SEVERAL:
        return letters
    if not found and set(all_words) & set(_PLAIN):
        return PLAIN
    return found[0] if len(found) == 1 else None


def _projection(word: str) -> str | None:
    letters = word.removeprefix("w")
    if sorted(letters) in _SEVERAL:
        return letters
    return known_as(word, PROJECTIONS)


def words_of(name: str) -> list[str]:
    """Split a name into words, at capitals, dots and underscores."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def known_as(name: str, table: dict[str, tuple[str, ...]]) -> str | None:
    """Return the key of the table that has this name, or None."""
    plain = name.strip("_").lower()
    return next((role for role, names in table.items() if plain in names), None)


def parameters_of(function: Callable) -> list[inspect.Parameter]:
    """Return a function's named parameters, without *args and **kwargs."""
    hidden = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind not in hidden]


def takes_anything(function: Callable) -> bool:
    """Return whether a function has **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
