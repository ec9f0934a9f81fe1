"""Numbers in sentences."""


def counted(number: int, thing: str) -> str:
    """Return a number with what it counts: "1 head", "1,024 tokens"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
