"""Lengthens the pause before a retry from one failure to the next."""

from dataclasses import dataclass

FIRST_RETRY, LAST_RETRY = 0.5, 30.0
MOST_DOUBLINGS = 8


@dataclass(slots=True)
class Pause:
    """Grows from one try to the next."""

    tries: int = 0
    not_before: float = 0.0

    def lengthen(self, now: float) -> None:
        """Wait longer than the last time."""
        wait = FIRST_RETRY * 2.0 ** min(self.tries, MOST_DOUBLINGS)
        self.tries, self.not_before = self.tries + 1, now + min(wait, LAST_RETRY)

    def at_least(self, tries: int) -> None:
        """Go on as if there had been so many tries."""
        self.tries = max(self.tries, tries)

    def end(self) -> None:
        """Start over."""
        self.tries, self.not_before = 0, 0.0
