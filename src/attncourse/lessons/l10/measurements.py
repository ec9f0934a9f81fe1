"""What made the difference between two measurements."""

from attncourse.checking import CheckResult, Choice, check_choices, exercise

FOUND = {
    "loop": "16 tokens, eight heads: one after the other takes longer than all at once",
    "fused": "1,024 tokens: explicit softmax takes longer than the fused kernel",
    "shared": "one query, 8,192 keys: 16 KV heads take longer than 1",
    "late": "with a cache: token 1,024 takes longer than token 16",
}
CAUSES = {
    "calls": "each call of a program has a price of its own",
    "maps": "large intermediate results are written and read again",
    "reading": "the same multiplications need more different numbers from memory",
    "more": "there are more multiplications",
}
RIGHT = {"loop": "calls", "fused": "maps", "shared": "reading", "late": "more"}


@exercise(page=Choice(CAUSES, each=FOUND))
def explained(answer: object) -> CheckResult:
    """Check which cause explains each of four measurements: {"loop": "calls", ...}."""
    praise = (
        "Calls, traffic, reading and work: before you make something faster, ask which of the "
        "four slows it down."
    )
    return check_choices(answer, RIGHT, explained, praise=praise)
