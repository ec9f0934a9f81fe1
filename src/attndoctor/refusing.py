"""Errors by which code says that it doesn't take something, and how many tokens it got."""

import dis

_OF_OTHERS = {"attnlib", "torch", "einops"}  # what they raise is about mistakes of their callers


def is_refusal(error: object) -> bool:
    """Tell whether an error was raised on purpose, by `raise` or `assert`, outside of libraries."""
    place = error.__traceback__ if isinstance(error, Exception) else None
    if place is None:
        return False
    while place.tb_next is not None:
        place = place.tb_next
    code, module = place.tb_frame.f_code, place.tb_frame.f_globals.get("__name__", "")
    on_purpose = dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"
    return on_purpose and module.partition(".")[0] not in _OF_OTHERS


def note_size(error: Exception, B: int, T: int) -> None:
    """Note on how many samples and tokens an error came."""
    plural = [f"{n} {what}{'s' if n > 1 else ''}" for n, what in ((B, "sample"), (T, "token"))]
    error.add_note(" of ".join(plural))


def noted_size(error: Exception) -> str:
    """Return what was noted last, such as "13 samples of 1 token"."""
    return getattr(error, "__notes__", [""])[-1]
