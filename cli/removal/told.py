"""Words what a removal did, line by line, and what is left to do."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

NAMED = 5


@dataclass(slots=True)
class Told:
    """Tells each step as it is done; `left` is what could not be done, each with why."""

    say: Callable[[str], None]
    progress: Callable[[str], None] = lambda _: None
    left: list[str] = field(default_factory=list)

    def leave(self, what: str) -> None:
        """Note what is left, and go on."""
        self.left.append(what)
        self.say(f"  not done: {what}")


def counted(count: int, one: str, many: str = "") -> str:
    """Count things: `1 pod`, `3 pods`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def named(found: Iterable[str]) -> str:
    """Name the first few, and count the rest."""
    names = sorted(found)
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
