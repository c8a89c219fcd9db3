"""Orders names as people count: gpu-2 before gpu-10."""

import re

_NUMBER = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Return a key to sort names by, the numbers in them by their size."""
    parts = _NUMBER.split(name)
    return tuple(
        (text, int(number) if number else -1)
        for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)
    )
