"""How long a page may be, of what `course.lengths` counts."""

from course.lengths import Length

LESSON_LIMITS = {"minutes": 45, "words": 3900, "lines": 200, "figures": 12}
MOST_LINES = {"L10": 300}  # a lesson about code
START_PAGE_LIMITS = {"words": 800}


def limits_of(page: str) -> dict[str, int]:
    """Return the limits of a page such as "book/index"; references and the museum have none."""
    name = page.split("/")[-1]
    if name == "index":
        return START_PAGE_LIMITS
    if not (name[0] == "L" and name[1:3].isdigit()):
        return {}
    return LESSON_LIMITS | {"lines": MOST_LINES.get(name[:3], LESSON_LIMITS["lines"])}


def excess(page: str, length: Length) -> list[str]:
    """Say what of a page is over its limit, and by how much."""
    counted = {name: getattr(length, name) for name in limits_of(page)}
    return [
        f"{counted[name] - limit} {name} too many ({counted[name]} of {limit})"
        for name, limit in limits_of(page).items()
        if counted[name] > limit
    ]
